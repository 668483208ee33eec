/** Why an entity is an answer: the query graph filled in, its conditions, and what is around it. */

import { Latest } from './api.js';
import { announce, button, html, progress } from './dom.js';
import { drawGraph, legend, lookOf, sample } from './graph.js';
import { entityLink, relationList } from './neighbours.js';
import { wholePercent } from './names.js';

/** Reasons that are asked for, and entities of each relation around the answer. */
const REASONS = 5;
const NEIGHBOURS = 6;

const NO_REASON =
  'No entities for the variables explain this answer; the method ranks it by its score alone.';

const LOOK_OF = {
  known: 'known',
  predicted: 'predicted',
  missing: 'missing',
  'not known to hold': 'absent',
  'known but denied': 'denied',
  'no path is known': 'no-path',
  'path known but denied': 'denied',
  'path known but denied, unless an edge is missing': 'denied',
  false: 'denied',
};

export class Why {
  #explaining = new Latest();
  #knowing = new Latest();
  #shown = '';
  #explanation = null;

  /** @param {import('./state.js').Store} store */
  constructor(store) {
    this.store = store;
    this.title = html('h2', { id: 'why-title', tabindex: -1 }, 'Why');
    this.close = button('Close', () => this.#leave(), {
      class: 'quiet',
      'aria-label': 'Close the reason',
    });
    this.body = html('div', { class: 'reason' });
    this.around = html('div', { class: 'around' });
    this.element = html(
      'section',
      { class: 'card why', 'aria-labelledby': 'why-title' },
      html('div', { class: 'section-head' }, this.title, this.close),
      this.body,
      this.around,
    );
  }

  /** @param {import('./state.js').State} state */
  update(state, before) {
    const isOpen = state.asked && state.answer !== '';
    this.close.hidden = !isOpen;
    if (!isOpen) {
      this.#showNothing();
      return;
    }
    const wanted = JSON.stringify([state.run, state.question, state.answer, state.by]);
    if (wanted !== this.#shown) {
      this.#shown = wanted;
      this.#explain(state, state.answer !== before.answer);
      this.#know(state);
    } else if (state.reason !== before.reason) this.#showReason();
  }

  #showNothing() {
    this.#explaining.cancel();
    this.#knowing.cancel();
    this.#shown = '';
    this.title.textContent = 'Why';
    this.around.replaceChildren();
    const hint = 'Choose an answer to see which known and predicted edges lead to it.';
    this.body.replaceChildren(html('p', { class: 'empty' }, hint));
  }

  /** Close the reason and return to its answer. */
  #leave() {
    const { id } = document.querySelector('.answer[aria-pressed=true]') ?? {};
    this.store.set({ answer: '', by: '', reason: 0 }, { step: true });
    document.getElementById(id)?.focus();
  }

  async #explain({ run, question, answer, by }, focus) {
    this.title.textContent = 'Why';
    this.body.replaceChildren(progress('Looking for reasons …'));
    if (focus) this.title.focus();
    const fields = {
      run: run || undefined,
      question,
      answer,
      method: by || undefined,
      count: REASONS,
    };
    const outcome = await this.#explaining.call('explain', fields);
    if (!outcome) return;
    if (outcome.error) {
      this.body.replaceChildren(
        html('p', { class: 'error', role: 'alert' }, outcome.error.message),
      );
      return;
    }
    this.#explanation = outcome.value;
    this.title.textContent = `Why ${outcome.value.answer.label}?`;
    announce(
      `Why ${outcome.value.answer.label}: ${outcome.value.reasons[0]?.title ?? 'no reason'}`,
    );
    this.#showReason();
    if (focus) this.#reveal();
  }

  /** On a phone, the reason is below the answers: only its title would be seen. */
  #reveal() {
    const { top } = this.title.getBoundingClientRect();
    if (top > innerHeight / 2) this.element.scrollIntoView({ block: 'start' });
  }

  #showReason() {
    const { reasons, answer } = this.#explanation;
    const entity = entityLink(this.store.state.run, answer, 'Entity page');
    if (!reasons.length) {
      this.body.replaceChildren(html('p', {}, NO_REASON, ' ', entity));
      return;
    }
    const number = Math.min(this.store.state.reason, reasons.length - 1);
    const reason = reasons[number];
    const looks = new Set([
      ...reason.graph.edges.map(lookOf),
      ...reason.graph.frames.map((f) => f.look),
    ]);
    this.body.replaceChildren(
      html('div', { class: 'row' }, this.#pages(number, reasons.length), entity),
      html('p', { class: 'reason-title' }, reason.title),
      drawGraph(reason.graph, `The reason for ${answer.label}`),
      legend(looks),
      html('ul', { class: 'conditions', 'aria-label': 'Conditions' }, reason.atoms.map(condition)),
    );
  }

  /** The way to other reasons. */
  #pages(number, count) {
    const turn = (step) => {
      this.store.set({ reason: number + step });
      const buttons = [...this.body.querySelectorAll('.pages button')];
      buttons.find((one) => !one.disabled && one.dataset.step === String(step))?.focus();
    };
    const arrow = (step, text, name) =>
      button(text, () => turn(step), {
        'aria-label': name,
        'data-step': step,
        disabled: number + step < 0 || number + step >= count,
      });
    if (count === 1) return '';
    return html(
      'div',
      { class: 'pages' },
      arrow(-1, '‹', 'Previous reason'),
      html('span', {}, `Reason ${number + 1} of ${count}`),
      arrow(1, '›', 'Next reason'),
    );
  }

  /** The neighbourhood of the answer in the training graph. */
  async #know({ run, answer }) {
    this.around.replaceChildren();
    const fields = { run: run || undefined, name: answer, k: NEIGHBOURS };
    const outcome = await this.#knowing.get('/api/entity', fields);
    if (!outcome?.value?.known.length) return;
    const entity = outcome.value;
    this.around.replaceChildren(
      html('h3', {}, `Around ${entity.label} in the training graph`),
      relationList(run, entity, entity.known),
    );
  }
}

/** A condition in words, after a sample of its line. */
function condition(atom) {
  const look = LOOK_OF[atom.status] ?? (atom.negated ? 'different' : 'equal');
  const chance =
    atom.probability === null || atom.status === 'missing'
      ? ''
      : ` ${wholePercent(atom.probability)}`;
  const likely = chance && atom.status !== 'predicted' ? `,${chance} likely` : chance;
  return html(
    'li',
    {},
    sample(look, 26),
    html('span', { class: `status look-${look}` }, `${atom.status}${likely}`),
    ' ',
    html('code', {}, atom.text),
  );
}
