/** A table of answers: rank, name and mark, probability as a bar. */

import { html, shape } from './dom.js';
import { percent, scoreText } from './names.js';

/** Whether an answer passes the filters. */
export function matches(answer, { filter, mark }) {
  if (mark === 'known' && !answer.known) return false;
  if (mark === 'predicted' && answer.known) return false;
  if (mark === 'confirmed' && (answer.known || !answer.confirmed)) return false;
  const text = filter.trim().toLowerCase();
  return [answer.label, answer.id].some((name) => name.toLowerCase().includes(text));
}

/**
 * @param {Object} result an answer of /api/ask
 * @param {import('./state.js').Store} store
 * @param {string} method
 */
export function answerTable(result, store, method) {
  const shown = result.answers.filter((answer) => matches(answer, store.state));
  if (!shown.length) return null;
  const figure = result.estimated ? 'Probability' : 'Score';
  const explain = (answer) =>
    store.set({ answer: answer.id, by: method, reason: 0 }, { step: true });
  return html(
    'table',
    { class: 'answer-table' },
    html('caption', { class: 'hidden-text' }, `Answers by ${method}; choose one to see why`),
    html(
      'thead',
      {},
      html(
        'tr',
        {},
        html('th', { scope: 'col', class: 'rank' }, '#'),
        html('th', { scope: 'col' }, 'Answer'),
        html('th', { scope: 'col', class: 'figure' }, figure),
      ),
    ),
    html(
      'tbody',
      {},
      shown.map((answer) => row(answer, result, store.state, method, explain)),
    ),
  );
}

function row(answer, result, state, method, explain) {
  const isChosen = state.asked && state.answer === answer.id && (!state.by || state.by === method);
  const name = html(
    'button',
    {
      type: 'button',
      id: `answer-${method}-${answer.rank}`,
      class: 'answer',
      'aria-pressed': String(isChosen),
      disabled: !state.asked,
      onclick: () => explain(answer),
    },
    answer.label,
  );
  const id =
    answer.id === answer.label ? null : html('span', { class: 'muted id' }, ` ${answer.id}`);
  return html(
    'tr',
    { class: isChosen ? 'chosen' : null },
    html('td', { class: 'rank' }, String(answer.rank)),
    html('td', {}, name, id, markText(answer)),
    html('td', { class: 'figure' }, figureOf(answer, result.estimated)),
  );
}

/** The mark of an answer in words, after a shape. */
export function markText(answer) {
  return html('span', { class: `mark ${markOf(answer)}` }, shape(markOf(answer)), answer.mark);
}

function markOf({ known, confirmed }) {
  if (known === null) return 'unchecked';
  if (known) return confirmed ? 'known' : 'contradicted';
  return confirmed ? 'confirmed' : 'predicted';
}

/** A probability with its bar, or a score. */
function figureOf(answer, isEstimated) {
  if (isEstimated && answer.probability === null) {
    const why = 'not estimated: a missing edge may contradict a known answer with a negation';
    return html('span', { class: 'number muted', title: why }, '–');
  }
  const number = html('span', { class: 'number' }, figureText(answer));
  return isEstimated ? html('div', { class: 'meter' }, bar(answer.probability), number) : number;
}

/** The probability in percent, or the score if there is none. */
export function figureText({ probability, score }) {
  return probability === null ? scoreText(score) : percent(probability);
}

/** A bar as long as a probability; the number beside it says the same in words. */
export function bar(probability) {
  const filling = html('span', {});
  filling.style.width = `${Math.max(1, probability * 100)}%`;
  return html('span', { class: 'bar', 'aria-hidden': 'true' }, filling);
}
