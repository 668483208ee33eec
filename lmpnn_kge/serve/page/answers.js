/** The answers to the question: methods, filters, columns of answers, and what to do meanwhile. */

import { Latest } from './api.js';
import { answerTable, matches } from './answer_table.js';
import { announce, button, html, progress } from './dom.js';
import { exportButtons } from './export.js';
import { MethodChoice } from './methods.js';
import { counted, methodName } from './names.js';
import { PAGE } from './state.js';

const STALE = 'The question has changed since these answers. Ask again to see new ones.';

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
    this.methods = new MethodChoice(store, run);
    this.filter = html('input', {
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
    this.body = html('div', { class: 'answer-lists' });
    this.element = html(
      'section',
      { class: 'card answers', 'aria-labelledby': 'answers-title' },
      html(
        'div',
        { class: 'section-head' },
        html('h2', { id: 'answers-title' }, 'Answers'),
        this.exports,
      ),
      html('div', { class: 'toolbar' }, this.methods.element, this.filters),
      this.body,
    );
  }

  /** @param {import('./state.js').State} state */
  update(state) {
    if (this.filter.value !== state.filter) this.filter.value = state.filter;
    this.marks.value = state.mark;
    this.methods.update(state);
    if (state.asked) this.#load(state);
    else if (!state.question) this.#clear();
    this.element.classList.toggle('stale', !state.asked && !this.isEmpty);
    this.#render();
  }

  /** Ask each chosen method, if what is asked has changed. */
  #load({ run, question, rows, mark }) {
    const predicted = mark === 'predicted' || mark === 'confirmed';
    const asked = JSON.stringify([run, question, predicted]);
    if (asked !== this.#shown) this.#clear();
    this.#shown = asked;
    const before = this.#columns;
    const { chosen } = this.methods;
    this.#columns = chosen.map(
      (method) => before.find((column) => column.method === method) ?? newColumn(method),
    );
    for (const column of before) if (!this.#columns.includes(column)) column.request.cancel();
    const fields = { run: run || undefined, question, predicted };
    for (const column of this.#columns) this.#extend(column, fields, rows);
  }

  /** Whether nothing was asked yet. */
  get isEmpty() {
    return this.#columns.length === 0;
  }

  #clear() {
    for (const column of this.#columns) column.request.cancel();
    this.#columns = [];
    this.#shown = null;
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
    this.filters.hidden = this.isEmpty;
    if (this.isEmpty) {
      const hint = 'Ask a question: type it, choose an example, or build it in the graph.';
      this.body.replaceChildren(html('p', { class: 'empty' }, hint));
      this.exports.replaceChildren();
      return;
    }
    const focused = this.body.contains(document.activeElement) ? document.activeElement.id : null;
    this.body.replaceChildren(
      ...(state.asked ? [] : [html('p', { class: 'note' }, STALE)]),
      html(
        'div',
        { class: 'columns' },
        this.#columns.map((column) => this.#column(column)),
      ),
    );
    if (focused) document.getElementById(focused)?.focus();
    const passes = (answer) => matches(answer, state);
    this.exports.replaceChildren(...exportButtons(this.#columns, passes));
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
    const isFiltered = answers.length > shown;
    const text = isFiltered
      ? `${shown} of ${counted(answers.length, 'answer')} shown.`
      : 'No answers.';
    return html(
      'div',
      { class: 'foot' },
      isFiltered || !shown ? html('p', { class: 'muted' }, text) : null,
      complete
        ? null
        : html('p', { class: 'note' }, 'The server cut this list at its limit of rows.'),
      more && this.store.state.asked
        ? button('More answers', () => this.#more(), { id: `more-${column.method}` })
        : null,
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
    return progress('Searching …', cancel);
  }

  #failure(column) {
    const { message, excerpt } = column.error;
    const again = button('Try again', () => {
      column.error = null;
      this.update(this.store.state);
    });
    // A wrong question is marked below its text, and does not become right by asking it again.
    return html(
      'div',
      { class: 'failure' },
      html('p', { class: 'error' }, message),
      excerpt ? null : again,
    );
  }
}

function newColumn(method) {
  return { method, request: new Latest(), isLoading: false, result: null, error: null };
}
