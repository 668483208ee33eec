/** A list of suggestions below a text field: arrows choose, Enter or Tab takes, Escape closes. */

import { html, newId } from './dom.js';
import { counted } from './names.js';

/**
 * @typedef {Object} Item
 * @property {string} insert the name as a formula has it
 * @property {string} id
 * @property {string} label
 * @property {string | null} type
 * @property {number} count known edges
 */

export class Suggestions {
  #items = [];
  #active = -1;

  /**
   * @param {HTMLInputElement | HTMLTextAreaElement} field
   * @param {string} name what the list is, for screen readers
   * @param {(item: Item) => void} take
   */
  constructor(field, name, take) {
    this.field = field;
    this.take = take;
    this.element = html('ul', {
      id: newId('suggestions'),
      class: 'suggestions',
      role: 'listbox',
      'aria-label': name,
      hidden: true,
    });
    field.setAttribute('aria-autocomplete', 'list');
    field.setAttribute('aria-haspopup', 'listbox');
    field.setAttribute('aria-controls', this.element.id);
    field.addEventListener('blur', () => this.close());
    this.close();
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {Item[]} items */
  show(items) {
    if (!items.length || document.activeElement !== this.field) {
      this.close();
      return;
    }
    this.#items = items;
    this.element.replaceChildren(...items.map((item, number) => this.#option(item, number)));
    this.element.hidden = false;
    this.element.scrollTop = 0;
    this.#expanded(true);
    this.#activate(-1);
  }

  close() {
    this.element.hidden = true;
    this.#expanded(false);
    this.#activate(-1);
  }

  /** Handle a key that is meant for the list; whether it was one. */
  handle(event) {
    if (!this.isOpen || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) {
      return false;
    }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') this.#step(event.key === 'ArrowDown');
    else if (event.key === 'Escape') this.close();
    else if (event.key === 'Tab' && !event.shiftKey) this.#choose(Math.max(0, this.#active));
    else if (event.key === 'Enter' && this.#active >= 0) this.#choose(this.#active);
    else return false;
    event.preventDefault();
    return true;
  }

  #option(item, number) {
    const edges = item.count ? counted(item.count, 'edge') : '';
    const facts = [item.type, edges].filter(Boolean).join(' · ');
    return html(
      'li',
      {
        id: `${this.element.id}-${number}`,
        role: 'option',
        'aria-selected': 'false',
        onpointerdown: (event) => event.preventDefault(), // the field keeps the focus
        onclick: () => this.#choose(number),
      },
      html('span', { class: 'name' }, item.label),
      ' ',
      item.id === item.label ? null : html('span', { class: 'muted id' }, item.id),
      ' ',
      html('span', { class: 'muted facts' }, facts),
    );
  }

  /** To the next or the previous option; between the last and the first, none is active. */
  #step(down) {
    const size = this.#items.length + 1;
    this.#activate(((this.#active + 1 + (down ? 1 : -1) + size) % size) - 1);
  }

  #activate(number) {
    this.element.children[this.#active]?.setAttribute('aria-selected', 'false');
    this.#active = number;
    const option = this.element.children[number];
    if (!option || !this.isOpen) {
      this.field.removeAttribute('aria-activedescendant');
      return;
    }
    option.setAttribute('aria-selected', 'true');
    option.scrollIntoView({ block: 'nearest' });
    this.field.setAttribute('aria-activedescendant', option.id);
  }

  #choose(number) {
    const item = this.#items[number];
    this.close();
    this.take(item);
  }

  /** A text area cannot be expanded by the rules of ARIA, a combobox must say whether it is. */
  #expanded(value) {
    if (this.field.getAttribute('role') === 'combobox') {
      this.field.setAttribute('aria-expanded', String(value));
    }
  }
}
