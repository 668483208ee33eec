/** The answers to the question: methods, filters, columns of answers, and what to do meanwhile. */

import { Latest } from './api.js';
import { answerTable, matches } from './answer_table.js';
import { announce, button, html, newId } from './dom.js';
import { exportButtons } from './export.js';
import { counted, methodName } from './names.js';
import { PAGE } from './state.js';

const MARKS = [
  ['all', 'all answers'],
  ['predicted', 'predicted only'],
  ['known', 'known only'],
  ['confirmed', 'predicted and confirmed'],
];

/**
 * @typedef {Object} Column the answers of one method
 * @property {string} method
 * @property {Latest} request
 * @property {boolean} isLoading
 * @property {?Object} result the last answer of /api/ask, with all answers so far
 * @property {?Error} error
 */

export class Answers {
  /** @type {Column[]} */
  #columns = [];
  #shown = null; // what the columns answer

  /**
   * @param {import('./state.js').Store} store
   * @param {() => Object} run the run as /api/runs describes it
   */
  constructor(store, run) {
    this.store = store;
    this.run = run;
    this.methods = html('fieldset', { class: 'methods' });
    this.filter = html('input', {
      id: newId('filter'),
      type: 'search',
      placeholder: 'Filter by name',
      'aria-label': 'Filter the answers by name',
      oninput: () => store.set({ filter: this.filter.value }),
    });
    this.marks = html(
      'select',
      { 'aria-label': 'Which answers', onchange: () => store.set({ mark: this.marks.value }) },
      MARKS.map(([value, text]) => html('option', { value }, text)),
    );
    this.filters = html('div', { class: 'filters' }, this.filter, this.marks);
    this.exports = html('div', { class: 'exports' });
    this.body = html('div', { class: 'columns' });
    this.element = html(
      'section',
      { class: 'card answers', 'aria-labelledby': 'answers-title' },
      html(
        'div',
        { class: 'section-head' },
        html('h2', { id: 'answers-title' }, 'Answers'),
        this.exports,
      ),
      html('div', { class: 'toolbar' }, this.methods, this.filters),
      this.body,
    );
  }

  /** @param {import('./state.js').State} state */
  update(state) {
    if (this.filter.value !== state.filter) this.filter.value = state.filter;
    this.marks.value = state.mark;
    this.#showMethods(state);
    this.element.classList.toggle('stale', !state.asked && this.#columns.length > 0);
    if (state.asked) this.#load(state);
    this.#render();
  }

  /** The methods whose answers are shown. */
  get #chosen() {
    const { methods, compare } = this.store.state;
    const known = methods.filter((method) => this.run().methods.includes(method));
    const chosen = known.length ? known : [this.run().method];
    return compare ? chosen : chosen.slice(0, 1);
  }

  #showMethods({ compare }) {
    const chosen = this.#chosen;
    const type = compare ? 'checkbox' : 'radio';
    const chip = (method) =>
      html(
        'label',
        { class: 'chip' },
        html('input', {
          type,
          name: 'method',
          value: method,
          checked: chosen.includes(method),
          onchange: () => this.#choose(method),
        }),
        methodName(method),
      );
    const several = html('input', {
      type: 'checkbox',
      name: 'compare',
      checked: compare,
      onchange: (event) => this.#compare(event.target.checked),
    });
    const focused = this.methods.contains(document.activeElement) && document.activeElement;
    this.methods.replaceChildren(
      html('legend', { class: 'hidden-text' }, 'Method'),
      ...this.run().methods.map(chip),
      html('label', { class: 'tick' }, several, ' side by side'),
    );
    if (focused) this.methods.querySelector(selectorOf(focused))?.focus();
  }

  #choose(method) {
    const { compare } = this.store.state;
    const chosen = this.#chosen;
    const others = chosen.filter((other) => other !== method);
    const both = this.run().methods.filter((m) => m === method || chosen.includes(m));
    const toggled = chosen.includes(method) ? others : both;
    this.#chooseAll(compare ? toggled : [method]);
  }

  #compare(compare) {
    this.#chooseAll(compare ? this.run().methods.slice(0, 3) : this.#chosen.slice(0, 1), compare);
  }

  #chooseAll(methods, compare = this.store.state.compare) {
    const step = this.store.state.asked;
    this.store.set({ methods, compare, answer: '', by: '', reason: 0, rows: PAGE }, { step });
  }

  /** Ask each chosen method, if what is asked has changed. */
  #load({ run, question, rows, mark }) {
    const predicted = mark === 'predicted' || mark === 'confirmed';
    const asked = JSON.stringify([run, question, predicted]);
    const before = asked === this.#shown ? this.#columns : [];
    for (const column of this.#columns) {
      if (!before.includes(column) || !this.#chosen.includes(column.method))
        column.request.cancel();
    }
    this.#shown = asked;
    this.#columns = this.#chosen.map((method) => {
      const column = before.find((other) => other.method === method) ?? newColumn(method);
      this.#extend(column, { run: run || undefined, question, predicted }, rows);
      return column;
    });
  }

  /** Ask a method for as many answers as are wanted, if it has more than so far. */
  async #extend(column, fields, rows) {
    const answers = column.result?.answers ?? [];
    const isDone = column.result && (answers.length >= rows || !column.result.more);
    if (column.isLoading || column.error || isDone) return;
    column.isLoading = true;
    const range = { offset: answers.length, k: rows - answers.length, method: column.method };
    const outcome = await column.request.call('ask', { ...fields, ...range });
    column.isLoading = false;
    if (!outcome) return;
    if (outcome.error) column.error = outcome.error;
    else column.result = { ...outcome.value, answers: [...answers, ...outcome.value.answers] };
    announce(this.#summary(column));
    this.#render();
  }

  #summary({ method, error, result }) {
    if (error) return error.message;
    return `${counted(result.answers.length, 'answer')} by ${methodName(method)}`;
  }

  #render() {
    const { state } = this.store;
    this.filters.hidden = !this.#columns.length;
    if (!this.#columns.length) {
      const hint = 'Ask a question: type it, choose an example, or build it in the graph.';
      this.body.replaceChildren(html('p', { class: 'empty' }, hint));
      this.exports.replaceChildren();
      return;
    }
    const focus = this.body.contains(document.activeElement) ? document.activeElement : null;
    this.body.replaceChildren(
      ...(state.asked
        ? []
        : [
            html(
              'p',
              { class: 'note' },
              'The question has changed since these answers. Ask again to see new ones.',
            ),
          ]),
      ...this.#columns.map((column) => this.#column(column)),
    );
    if (focus?.id) document.getElementById(focus.id)?.focus();
    this.exports.replaceChildren(
      ...exportButtons(state.question, this.#columns, (answer) => matches(answer, state)),
    );
  }

  #column(column) {
    const several = this.#columns.length > 1;
    const name = methodName(column.method);
    return html(
      'div',
      { class: 'column', 'aria-busy': String(column.isLoading) },
      several ? html('h3', {}, name) : null,
      ...(column.result?.notes ?? []).map((note) => html('p', { class: 'note' }, note)),
      column.result && answerTable(column.result, this.store, column.method),
      this.#foot(column),
    );
  }

  /** What comes after the answers: an error, progress, or the way to more of them. */
  #foot(column) {
    if (column.error) return this.#failure(column);
    if (column.isLoading) return this.#progress(column);
    if (!column.result) return null;
    const { answers, more, complete } = column.result;
    const shown = answers.filter((answer) => matches(answer, this.store.state)).length;
    const text =
      answers.length === 0
        ? 'No answers.'
        : `${shown} of ${counted(answers.length, 'answer')} shown.`;
    return html(
      'div',
      { class: 'foot' },
      answers.length && shown === answers.length ? null : html('p', { class: 'muted' }, text),
      complete
        ? null
        : html('p', { class: 'note' }, 'The server cut this list at its limit of rows.'),
      more ? button('More answers', () => this.#more(), { id: `more-${column.method}` }) : null,
    );
  }

  #more() {
    this.store.set({ rows: this.store.state.rows + PAGE });
  }

  #progress(column) {
    const cancel = button('Cancel', () => {
      column.request.cancel();
      column.isLoading = false;
      column.error = new Error('You cancelled this request.');
      this.#render();
    });
    return html(
      'div',
      { class: 'progress' },
      html('span', { class: 'spinner' }),
      'Searching …',
      cancel,
    );
  }

  #failure(column) {
    const { message, excerpt } = column.error;
    const again = button('Try again', () => {
      column.error = null;
      this.update(this.store.state);
    });
    return html(
      'div',
      { class: 'failure' },
      html('p', { class: 'error' }, message),
      excerpt ? html('pre', { class: 'excerpt', tabindex: 0 }, excerpt) : null,
      again,
    );
  }
}

function newColumn(method) {
  return { method, request: new Latest(), isLoading: false, result: null, error: null };
}

/** What finds the same box among others. */
function selectorOf({ name, value }) {
  return name === 'compare' ? '[name=compare]' : `[value="${CSS.escape(value)}"]`;
}
