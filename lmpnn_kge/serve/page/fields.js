/** Fields of the forms that change the question. */

import { html, newId } from './dom.js';
import { Picker } from './picker.js';

/** A choice between named values. */
export class Choice {
  /** @param {[string, string][]} options values with their texts */
  constructor(label, options, value = options[0][0]) {
    const id = newId('choice');
    const items = options.map(([name, text]) => html('option', { value: name }, text));
    this.select = html('select', { id }, items);
    this.select.value = value;
    this.element = html('div', { class: 'choice' }, html('label', { for: id }, label), this.select);
  }

  get value() {
    return this.select.value;
  }
}

/** A choice between an entity by name, a new variable, and the other variables of a graph. */
export class OtherEnd {
  /**
   * @param {string} label
   * @param {Object} graph
   * @param {number} node the node that is not offered
   * @param {() => Object<string, any>} fields what to complete entities by
   */
  constructor(label, graph, node, fields) {
    this.graph = graph;
    const isOther = ({ term }, number) => number !== node && term.startsWith('?');
    const variables = graph.nodes.flatMap((other, number) =>
      isOther(other, number) ? [[String(number), other.term]] : [],
    );
    const options = [['entity', 'an entity'], ['new', 'a new variable'], ...variables];
    this.choice = new Choice(label, options);
    this.entity = new Picker('Entity', fields);
    this.choice.select.addEventListener('change', () => {
      this.entity.element.hidden = !this.#isEntity;
    });
    this.element = html('div', { class: 'row other' }, this.choice.element, this.entity.element);
  }

  get #isEntity() {
    return this.choice.value === 'entity';
  }

  /** Whether an entity is named, if one is wanted; if not, its field takes the focus. */
  isGiven() {
    if (!this.#isEntity || this.entity.term) return true;
    this.entity.field.focus();
    return false;
  }

  /** The number of a node, an entity as a formula has it, or undefined for a new variable. */
  get end() {
    if (this.choice.value === 'new') return undefined;
    return this.#isEntity ? this.entity.term : Number(this.choice.value);
  }

  /** The same as a term. */
  get term() {
    return typeof this.end === 'number' ? this.graph.nodes[this.end].term : this.end;
  }
}

/** A box to tick. */
export function tick(text, options = {}) {
  const box = html('input', { type: 'checkbox', ...options });
  return { box, element: html('label', { class: 'tick' }, box, ' ', text) };
}

/** A form with one button, which does something without leaving the page. */
export function form(submit, content, action) {
  const send = (event) => {
    event.preventDefault();
    action();
  };
  const go = html('button', { type: 'submit', class: 'primary' }, submit);
  return html('form', { class: 'action-form', onsubmit: send }, content, go);
}

/** Something that one opens to see; of several beside each other, one is open. */
export function disclosure(title, content, open = false) {
  return html('details', { open, name: 'action' }, html('summary', {}, title), content);
}
