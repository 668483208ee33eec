/** What can be done with a node or an edge of the query graph. */

import { button, html } from './dom.js';
import { disclosure, form, Choice, OtherEnd, tick } from './fields.js';
import { edgeText, nodeName, nodeText } from './graph.js';
import { Picker } from './picker.js';

/**
 * @typedef {Object} Context
 * @property {Object} graph the graph of one part of the question
 * @property {string | undefined} run
 * @property {(fields: Object<string, any>) => void} edit change the question
 */

/** @param {Context} context */
export function nodeActions(context, number) {
  const node = context.graph.nodes[number];
  const title = node.kind === 'free' ? 'The answer ?' : capital(nodeText(node));
  return [
    html('h3', {}, title),
    disclosure('Add a condition', conditionForm(context, number), true),
    node.kind === 'free' ? null : disclosure('Replace …', replaceForm(context, number)),
    disclosure('Make it different from …', differenceForm(context, number)),
    quickActions(context, node, number),
  ];
}

/** @param {Context} context */
export function edgeActions(context, number) {
  const edge = context.graph.edges[number];
  const change = (action) => () => context.edit({ action, edge: number });
  const isFree = edge.frame === null;
  return [
    html('h3', {}, capital(edgeText(context.graph, edge))),
    html(
      'div',
      { class: 'row' },
      button(signText(edge), change('negate')),
      button('Remove', change('remove')),
      isFree ? null : button('Allow the group again', change('allow')),
    ),
    isFree ? disclosure('Deny as a group …', groupForm(context, number)) : null,
  ];
}

function signText(edge) {
  if (edge.equality) return edge.negated ? 'Make them equal' : 'Make them different';
  return edge.negated ? 'Do not negate' : 'Negate';
}

/** A form that adds an edge to a node, out of it or into it. */
export function conditionForm({ graph, run, edit }, number) {
  const name = nodeName(graph.nodes[number]);
  const here = new Choice('Direction', [
    ['head', `${name} → …`],
    ['tail', `… → ${name}`],
  ]);
  const there = () => (here.value === 'head' ? 'tail' : 'head');
  const relation = new Picker('Relation', () => ({ run, role: 'relation' }));
  const other = new OtherEnd('Other end', graph, number, () => ({
    run,
    role: 'entity',
    relation: relation.name || undefined,
    end: there(),
  }));
  const negated = tick('not');
  const parts = [here, relation, other, negated].map((part) => part.element);
  return form('Add', parts, () => {
    if (!relation.term) {
      relation.field.focus();
      return;
    }
    if (!other.isGiven()) return;
    edit({
      action: 'add',
      relation: relation.term,
      [here.value]: number,
      [there()]: other.end,
      negated: negated.box.checked,
    });
  });
}

function replaceForm({ graph, run, edit }, number) {
  const other = new OtherEnd('By', graph, number, () => ({ run, role: 'entity' }));
  return form('Replace', [other.element], () => {
    if (other.isGiven()) edit({ action: 'replace', node: number, by: other.term });
  });
}

function differenceForm({ graph, run, edit }, number) {
  const other = new OtherEnd('Different from', graph, number, () => ({ run, role: 'entity' }));
  return form('Add', [other.element], () => {
    const fields = { relation: '=', head: number, tail: other.end, negated: true };
    if (other.isGiven()) edit({ action: 'add', ...fields });
  });
}

/** Actions that need nothing more. */
function quickActions({ edit }, node, number) {
  const buttons = {
    constant: () => button('Turn into a variable', () => edit({ action: 'replace', node: number })),
    existential: () => button('Ask for this instead', () => edit({ action: 'ask', node: number })),
  };
  const isOffered = node.kind in buttons && (node.kind === 'constant' || node.frame === null);
  return isOffered ? html('div', { class: 'row' }, buttons[node.kind]()) : null;
}

/** Choose which edges are denied together. */
function groupForm({ graph, edit }, number) {
  const ticks = graph.edges.map((edge, other) => {
    const isThis = other === number;
    return tick(edgeText(graph, edge), { checked: isThis, disabled: isThis });
  });
  const offered = ticks.filter((_, other) => graph.edges[other].frame === null);
  const meaning = 'All of these together must not hold: there is no such path.';
  const list = html(
    'div',
    { class: 'ticks' },
    html('p', { class: 'muted' }, meaning),
    offered.map((one) => one.element),
  );
  return form('Deny the group', [list], () => {
    const edges = ticks.flatMap(({ box }, other) => (box.checked ? [other] : []));
    edit({ action: 'deny', edges });
  });
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
