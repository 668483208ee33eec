/** The choice of the methods that answer: one of them, or several side by side. */

import { html } from './dom.js';
import { methodName } from './names.js';
import { PAGE } from './state.js';

/** Methods that are compared at first. */
const COMPARED = 3;

export class MethodChoice {
  /**
   * @param {import('./state.js').Store} store
   * @param {() => Object} run the run as /api/runs describes it
   */
  constructor(store, run) {
    this.store = store;
    this.run = run;
    this.element = html('fieldset', { class: 'methods' });
  }

  /** The methods whose answers are shown. */
  get chosen() {
    const { methods, compare } = this.store.state;
    const offered = methods.filter((method) => this.run().methods.includes(method));
    const chosen = offered.length ? offered : [this.run().method];
    return compare ? chosen : chosen.slice(0, 1);
  }

  /** @param {import('./state.js').State} state */
  update({ compare }) {
    const { activeElement } = document;
    const focused = this.element.contains(activeElement) ? activeElement.id : null;
    this.element.replaceChildren(
      html('legend', { class: 'hidden-text' }, 'Method'),
      ...this.run().methods.map((method) => this.#chip(method, compare)),
      this.#switch(compare),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  #chip(method, compare) {
    const box = html('input', {
      id: `method-${method}`,
      type: compare ? 'checkbox' : 'radio',
      name: 'method',
      checked: this.chosen.includes(method),
      onchange: () => this.#choose(compare ? this.#toggled(method) : [method]),
    });
    return html('label', { class: 'chip' }, box, methodName(method));
  }

  #switch(compare) {
    const box = html('input', {
      id: 'compare',
      type: 'checkbox',
      checked: compare,
      onchange: () => this.#compare(!compare),
    });
    return html('label', { class: 'tick' }, box, ' side by side');
  }

  /** The chosen methods with one more or one less, in the order of the run. */
  #toggled(method) {
    const { chosen } = this;
    return this.run().methods.filter((other) => chosen.includes(other) !== (other === method));
  }

  #compare(compare) {
    this.#choose(compare ? this.run().methods.slice(0, COMPARED) : this.chosen, compare);
  }

  #choose(methods, compare = this.store.state.compare) {
    const changes = { methods, compare, answer: '', by: '', reason: 0, rows: PAGE };
    this.store.set(changes, { step: this.store.state.asked });
  }
}
