/** Entities around an entity, by relation, with links to their pages and to questions. */

import { bar, figureText } from './answer_table.js';
import { html, shape } from './dom.js';
import { count, quoted } from './names.js';
import { toHash } from './state.js';

/** A link to the page of an entity. */
export function entityLink(run, { id, label }, text = label) {
  const name = text === label ? null : `${text}: ${label}`;
  return html('a', { href: toHash({ view: 'entity', run, name: id }), 'aria-label': name }, text);
}

/** The question whose answers stand at the other end of a relation. */
export function questionAbout(entity, { relation, end }) {
  const [name, term] = [quoted(relation.id), quoted(entity.id)];
  return end === 'head' ? `${name}(${term}, ?)` : `${name}(?, ${term})`;
}

/** Relations of an entity, each with the entities at its other end. */
export function relationList(run, entity, groups) {
  return html(
    'dl',
    { class: 'relations' },
    groups.flatMap((group) => relation(run, entity, group)),
  );
}

function relation(run, entity, group) {
  const question = questionAbout(entity, group);
  const ask = html(
    'a',
    {
      href: toHash({ run, question, asked: true }),
      class: 'ask-link',
      'aria-label': `Ask ${question}`,
      title: question,
    },
    'ask',
  );
  const rest = (group.total ?? 0) - group.entities.length;
  return [
    html(
      'dt',
      {},
      arrowText(group.end),
      html('span', { class: 'name' }, group.relation.label),
      ask,
    ),
    html(
      'dd',
      {},
      html(
        'ul',
        { class: 'entities' },
        group.entities.map((other) => neighbour(run, other)),
      ),
      rest > 0 ? html('span', { class: 'muted' }, `and ${count(rest)} more`) : null,
    ),
  ];
}

/** An arrow away from the entity or towards it. */
function arrowText(end) {
  const [sign, words] = end === 'head' ? ['→', 'to'] : ['←', 'from'];
  return html('span', { class: 'arrow-sign', role: 'img', 'aria-label': words }, sign);
}

function neighbour(run, other) {
  const link = entityLink(run, other);
  if (other.probability === undefined) return html('li', {}, link);
  const isConfirmed = html('span', { class: 'mark confirmed' }, shape('confirmed'), 'confirmed');
  return html(
    'li',
    { class: 'prediction' },
    link,
    other.probability === null ? html('span') : bar(other.probability),
    html('span', { class: 'number' }, figureText(other)),
    other.confirmed ? isConfirmed : null,
  );
}
