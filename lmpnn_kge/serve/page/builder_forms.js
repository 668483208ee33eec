/** What can be done with a node or an edge of the query graph. */

import { button, html, newId } from './dom.js';
import { edgeText, nodeName, nodeText, relationName } from './graph.js';
import { Picker } from './picker.js';

/**
 * @typedef {Object} Context
 * @property {string | undefined} run
 * @property {string[]} terms of this part of the question
 * @property {(fields: Object<string, any>) => void} edit change the question
 */

/** @param {Context} context */
export function nodeActions(context, node) {
  const title = html('h3', {}, node.kind === 'free' ? 'The answer ?' : capital(nodeText(node)));
  const forms = [disclosure('Add a condition', conditionForm(context, node), true)];
  if (node.kind === 'constant') forms.push(freeButton(context, node));
  if (node.kind !== 'free') forms.push(disclosure('Replace …', replaceForm(context, node)));
  forms.push(disclosure('Make it different from …', differenceForm(context, node)));
  return [title, ...forms];
}

/** @param {Context} context */
export function edgeActions(context, graph, number) {
  const edge = graph.edges[number];
  const change = (action) => () => context.edit({ action, edge: number });
  const buttons = [
    button(signText(edge), change('negate')),
    button('Remove', change('remove')),
    edge.frame === null ? null : button('Allow the group again', change('allow')),
  ];
  const forms = [html('div', { class: 'row' }, buttons)];
  if (edge.frame === null) {
    forms.push(disclosure('Deny as a group …', groupForm(context, graph, number)));
  }
  return [html('h3', {}, capital(edgeText(graph, edge))), ...forms];
}

function signText(edge) {
  if (edge.equality) return edge.negated ? 'Make them equal' : 'Make them different';
  return edge.negated ? 'Do not negate' : 'Negate';
}

/** A form that adds an edge to a node, out of it or into it. */
export function conditionForm(context, node) {
  const direction = choice('Direction', [
    ['head', `${nodeName(node)} → …`],
    ['tail', `… → ${nodeName(node)}`],
  ]);
  const here = () => direction.value;
  const there = () => (here() === 'head' ? 'tail' : 'head');
  const relation = new Picker('Relation', () => ({ run: context.run, role: 'relation' }));
  const other = otherEnd(context, 'Other end', node, () => ({
    run: context.run,
    role: 'entity',
    relation: relation.term || undefined,
    end: there(),
  }));
  const negated = html('input', { type: 'checkbox' });
  return form(
    'Add',
    [direction.element, relation.element, other.element, tick(negated, 'not')],
    () => {
      if (!relation.term) relation.field.focus();
      else if (other.isGiven())
        context.edit({
          action: 'add',
          relation: relation.term,
          [here()]: node.term,
          [there()]: other.term,
          negated: negated.checked,
        });
    },
  );
}

function replaceForm(context, node) {
  const fields = () => ({ run: context.run, role: 'entity' });
  const other = otherEnd(context, 'By', node, fields, 'entity');
  return form('Replace', [other.element], () => {
    if (other.isGiven()) context.edit({ action: 'replace', term: node.term, by: other.term });
  });
}

function freeButton(context, node) {
  const free = () => context.edit({ action: 'replace', term: node.term });
  return html('div', { class: 'row' }, button('Turn into a variable', free));
}

function differenceForm(context, node) {
  const entities = () => ({ run: context.run, role: 'entity' });
  const other = otherEnd(context, 'Different from', node, entities, 'entity');
  return form('Add', [other.element], () => {
    const fields = { relation: '=', head: node.term, tail: other.term, negated: true };
    if (other.isGiven()) context.edit({ action: 'add', ...fields });
  });
}

/** Choose which edges are denied together. */
function groupForm(context, graph, number) {
  const boxes = graph.edges.map((edge, other) =>
    html('input', {
      type: 'checkbox',
      value: other,
      checked: other === number,
      disabled: other === number,
    }),
  );
  const ticks = graph.edges.map((edge, other) => {
    if (edge.frame !== null) return null;
    return tick(
      boxes[other],
      other === number ? `${relationName(edge)} (this one)` : edgeText(graph, edge),
    );
  });
  const explanation = html(
    'p',
    { class: 'muted' },
    'There must be no path that fulfils all of these.',
  );
  return form('Deny the group', [html('div', { class: 'ticks' }, explanation, ticks)], () => {
    const edges = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    context.edit({ action: 'deny', edges });
  });
}

/**
 * A choice between a new variable, the other terms of this part and an entity by name.
 * Its term is undefined for a new variable.
 */
function otherEnd(context, label, node, fields, first = 'new') {
  const variables = context.terms.filter((term) => term !== node.term && term.startsWith('?'));
  const kind = choice(label, [
    ['entity', 'an entity'],
    ['new', 'a new variable'],
    ...variables.map((term) => [`=${term}`, term]),
  ]);
  kind.value = first;
  const entity = new Picker('Entity', fields);
  const show = () => {
    entity.element.hidden = kind.value !== 'entity';
  };
  kind.element.addEventListener('change', show);
  show();
  return {
    element: html('div', { class: 'row other' }, kind.element, entity.element),
    /** Whether an entity is named, if one is wanted; if not, its field is focused. */
    isGiven() {
      if (kind.value !== 'entity' || entity.term) return true;
      entity.field.focus();
      return false;
    },
    get term() {
      if (kind.value === 'new') return undefined;
      return kind.value === 'entity' ? entity.term || undefined : kind.value.slice(1);
    },
  };
}

function choice(label, options) {
  const id = newId('choice');
  const items = options.map(([value, text]) => html('option', { value }, text));
  const select = html('select', { id }, items);
  return {
    element: html('div', { class: 'choice' }, html('label', { for: id }, label), select),
    get value() {
      return select.value;
    },
    set value(value) {
      select.value = value;
    },
  };
}

function tick(box, text) {
  return html('label', { class: 'tick' }, box, ' ', text);
}

function form(submit, content, onsubmit) {
  const send = (event) => {
    event.preventDefault();
    onsubmit();
  };
  const go = html('button', { type: 'submit', class: 'primary' }, submit);
  return html('form', { class: 'action-form', onsubmit: send }, content, go);
}

function disclosure(title, content, open = false) {
  return html('details', { open, name: 'action' }, html('summary', {}, title), content);
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
