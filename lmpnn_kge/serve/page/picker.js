/** A field in which one picks a relation or an entity by its name. */

import { Latest, Pause } from './api.js';
import { html, newId } from './dom.js';
import { quoted } from './names.js';
import { Suggestions } from './suggestions.js';

export class Picker {
  #latest = new Latest();
  #item = null;

  /**
   * @param {string} label
   * @param {() => Object<string, any>} fields what to complete: the run, the role, the other end
   * @param {{placeholder?: string, onpick?: (item: Object) => void}} [options]
   */
  constructor(label, fields, { placeholder = '', onpick = () => {} } = {}) {
    this.fields = fields;
    this.onpick = onpick;
    const id = newId('picker');
    this.field = html('input', {
      id,
      type: 'text',
      role: 'combobox',
      placeholder,
      autocomplete: 'off',
      autocapitalize: 'off',
      spellcheck: 'false',
      oninput: () => this.#typed(),
      onclick: () => this.#complete(),
      onkeydown: (event) => this.#key(event),
    });
    this.suggestions = new Suggestions(this.field, `Suggestions: ${label}`, (item) =>
      this.#take(item),
    );
    this.element = html(
      'div',
      { class: 'picker' },
      html('label', { for: id }, label),
      html('div', { class: 'anchor' }, this.field, this.suggestions.element),
    );
    this.pause = new Pause(() => this.#complete(), 120);
  }

  /** What was picked or typed, as a formula has it; "" if that is nothing. */
  get term() {
    if (this.#item) return this.#item.insert;
    const text = this.field.value.trim();
    return text && quoted(text);
  }

  /** The same without quotes. */
  get name() {
    return this.#item?.id ?? this.field.value.trim();
  }

  clear() {
    this.#item = null;
    this.field.value = '';
  }

  #typed() {
    this.#item = null;
    this.pause.begin();
  }

  #key(event) {
    if (this.suggestions.handle(event)) event.stopPropagation();
    else if (event.key === 'ArrowDown') this.#complete();
  }

  async #complete() {
    const fields = { ...this.fields(), prefix: this.#item ? '' : this.field.value.trim() };
    const outcome = await this.#latest.call('complete', fields);
    if (outcome?.value) this.suggestions.show(outcome.value.items);
    else if (outcome) this.suggestions.close();
  }

  #take(item) {
    this.#item = item;
    this.field.value = item.label;
    this.onpick(item);
  }
}
