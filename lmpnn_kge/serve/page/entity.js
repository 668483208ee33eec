/** The page of an entity: what the graph knows about it, and what is predicted, by relation. */

import { Latest } from './api.js';
import { announce, html, progress } from './dom.js';
import { counted } from './names.js';
import { relationList } from './neighbours.js';
import { Picker } from './picker.js';

/** Entities of each relation: known ones, and of these the most probable predictions. */
const KNOWN = 12;
const PREDICTED = 5;

export class EntityView {
  #request = new Latest();
  #shown = '';

  /** @param {import('./state.js').Store} store */
  constructor(store) {
    this.store = store;
    const fields = () => ({ run: store.state.run || undefined, role: 'entity' });
    this.picker = new Picker('Find an entity', fields, {
      placeholder: 'Name or id',
      onpick: (item) => this.#open(item.id),
    });
    const submit = (event) => {
      event.preventDefault();
      if (this.picker.field.value.trim()) this.#open(this.picker.field.value.trim());
    };
    this.title = html('h1', { tabindex: -1 }, 'Entities');
    this.content = html('div', { class: 'entity' });
    this.element = html(
      'div',
      { class: 'view' },
      html('form', { class: 'card find', onsubmit: submit }, this.picker.element),
      html('div', { class: 'page-head' }, this.title),
      this.content,
    );
  }

  /** @param {import('./state.js').State} state */
  update(state) {
    const wanted = JSON.stringify([state.run, state.name]);
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    if (state.name) this.#load(state);
    else this.#showNothing();
  }

  #open(name) {
    this.picker.clear();
    this.store.set({ name }, { step: true });
  }

  #showNothing() {
    this.#request.cancel();
    this.title.textContent = 'Entities';
    const hint = 'Type a name to see what the graph knows about an entity, and what is predicted.';
    this.content.replaceChildren(html('p', { class: 'card empty' }, hint));
  }

  async #load({ run, name }) {
    this.content.replaceChildren(progress('Loading …'));
    const outcome = await this.#request.get('/api/entity', {
      run: run || undefined,
      name,
      k: KNOWN,
    });
    if (!outcome) return;
    if (outcome.error) {
      this.title.textContent = name;
      this.content.replaceChildren(
        html('p', { class: 'card error', role: 'alert' }, outcome.error.message),
      );
      return;
    }
    this.#show(run, outcome.value);
  }

  #show(run, entity) {
    this.title.textContent = entity.label;
    const facts = [entity.type, entity.id === entity.label ? null : entity.id].filter(Boolean);
    const side = (title, groups, nothing) =>
      html(
        'section',
        { class: 'card' },
        html('h2', {}, title),
        groups.length ? relationList(run, entity, groups) : html('p', { class: 'empty' }, nothing),
      );
    this.content.replaceChildren(
      ...(facts.length ? [html('p', { class: 'muted facts' }, facts.join(' · '))] : []),
      html(
        'div',
        { class: 'two' },
        side('Known', entity.known, 'The training graph has no edges of this entity.'),
        side('Predicted', mostProbable(entity.predicted), 'Nothing is predicted for this entity.'),
      ),
    );
    announce(`${entity.label}: ${counted(entity.known.length, 'known relation')}`);
  }
}

/** The first predictions of each relation, the relations with the most probable ones first. */
function mostProbable(groups) {
  const best = ({ entities }) => entities[0].probability ?? 0;
  return groups
    .filter((group) => group.entities.length)
    .sort((one, other) => best(other) - best(one))
    .map((group) => ({ ...group, entities: group.entities.slice(0, PREDICTED) }));
}
