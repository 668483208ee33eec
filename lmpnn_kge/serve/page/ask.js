/** The view in which one asks: the question, its graph, the answers, and why. */

import { Answers } from './answers.js';
import { Latest, Pause } from './api.js';
import { Builder } from './builder.js';
import { html } from './dom.js';
import { QuestionBox } from './question.js';
import { Why } from './why.js';

/** Milliseconds after the last key before the question is checked and drawn. */
const PAUSE = 150;

export class AskView {
  #drawing = new Latest();
  #drawn = null; // the run and question that are drawn, or will be
  #examplesOf = null;

  /**
   * @param {import('./state.js').Store} store
   * @param {() => Object} run the run as /api/runs describes it
   */
  constructor(store, run) {
    this.store = store;
    this.run = run;
    this.box = new QuestionBox(store);
    this.builder = new Builder(store);
    this.answers = new Answers(store, run);
    this.why = new Why(store);
    this.outcome = html('div', { class: 'two' }, this.answers.element, this.why.element);
    this.title = html('h1', { class: 'hidden-text', tabindex: -1 }, 'Ask');
    this.element = html(
      'div',
      { class: 'view ask' },
      this.title,
      html('div', { class: 'card first' }, this.box.element, this.builder.element),
      this.outcome,
    );
    this.pause = new Pause(() => this.#draw(), PAUSE);
  }

  /** @param {import('./state.js').State} state */
  update(state, before) {
    this.box.update(state);
    this.answers.update(state);
    this.why.element.hidden = this.answers.isEmpty || (state.compare && !state.answer);
    this.outcome.classList.toggle('wide', state.compare || this.answers.isEmpty);
    this.why.update(state, before);
    if (this.#examplesOf !== this.run()) this.box.showExamples(this.run().examples);
    this.#examplesOf = this.run();
    const wanted = JSON.stringify([state.run, state.question]);
    if (wanted === this.#drawn) return;
    this.#drawn = wanted;
    this.pause.cancel();
    this.#drawing.cancel();
    this.builder.showBusy();
    if (document.activeElement === this.box.field) this.pause.begin();
    else this.#draw();
  }

  /** Check and draw the question. */
  async #draw() {
    const { run, question } = this.store.state;
    if (!question.trim()) {
      this.box.showNothing();
      this.builder.showNothing();
      return;
    }
    const outcome = await this.#drawing.call('draw', {
      run: run || undefined,
      question,
      check: true,
    });
    if (!outcome) return;
    if (outcome.error) {
      this.box.showError(outcome.error);
      this.builder.showStale();
    } else {
      this.box.showDrawing(outcome.value);
      this.builder.show(outcome.value);
    }
  }
}
