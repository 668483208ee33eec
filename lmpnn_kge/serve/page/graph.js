/** Query graphs as SVG, from the places that the server gives for nodes, edges and frames. */

import { html, svg } from './dom.js';
import { shortened } from './names.js';

const MARGIN = 14;
const ARROW = 11;

/** How far a picture is reduced to fit; a wider one scrolls in its own frame. */
const SMALLEST = 0.62;

/** What each look of an edge means, for legends and screen readers. */
export const LOOKS = {
  plain: 'must hold',
  negated: 'must not hold',
  equality: 'must be the same',
  inequality: 'must be different',
  group: 'no such path',
  known: 'known',
  predicted: 'predicted',
  missing: 'missing',
  absent: 'denied by the question, not known to hold',
  denied: 'contradicts the question',
  'no-path': 'denied path, not known',
  equal: 'equal',
  different: 'different',
};

/** A graph that asks for nothing yet. */
export const NOTHING = {
  width: 44,
  height: 36,
  nodes: [
    { term: '?', kind: 'free', label: '?', tag: '', id: null, x: 22, y: 18, width: 36, height: 36 },
  ],
  edges: [],
  frames: [],
};

/**
 * A picture of a graph in a frame that scrolls if it is too wide. With onnode and onedge, nodes and
 * edges are buttons; they are called with a number and the element.
 */
export function drawGraph(graph, name, { onnode = null, onedge = null } = {}) {
  const width = graph.width + 2 * MARGIN;
  const height = graph.height + 2 * MARGIN;
  const picture = svg(
    'svg',
    {
      class: 'graph',
      viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`,
      role: onnode ? 'group' : 'img',
      'aria-label': onnode ? name : `${name}: ${graphText(graph)}`,
    },
    graph.frames.map(drawFrame),
    graph.edges.map((edge, number) => drawEdge(graph, edge, number, onedge)),
    graph.nodes.map((node, number) => drawNode(node, number, onnode)),
  );
  picture.style.width = `min(${width}px, max(100%, ${width * SMALLEST}px))`;
  const frame = html('div', { class: 'graph-frame' }, picture);
  // Once it is on the page: the answer is on the right.
  requestAnimationFrame(() => {
    frame.scrollTo({ left: frame.scrollWidth });
    // So that it can be moved by keyboard; its nodes and edges can be reached themselves.
    if (!onnode && frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  });
  return frame;
}

/** The conditions of a graph in words. */
export function graphText(graph) {
  return graph.edges.map((edge) => edgeText(graph, edge)).join('; ');
}

/** An edge in words. */
export function edgeText(graph, edge) {
  const [head, tail] = [graph.nodes[edge.head], graph.nodes[edge.tail]].map(nodeName);
  const words = edge.words ? `, ${edge.words}` : '';
  const more = edge.frame === null ? words : `${words}, in a denied group`;
  if (edge.equality) return `${head} ${edge.negated ? 'differs from' : 'equals'} ${tail}${more}`;
  return `${edge.negated ? 'not ' : ''}${relationName(edge)} from ${head} to ${tail}${more}`;
}

/** A node in words. */
export function nodeText(node) {
  const kinds = {
    constant: 'entity',
    free: 'the answer',
    existential: 'variable',
    nobody: 'variable',
  };
  const kind = kinds[node.kind];
  return kind ? `${kind} ${nodeName(node)}` : nodeName(node);
}

export function nodeName(node) {
  return node.tag ? `${node.tag} = ${node.label}` : node.label;
}

/** The name of an edge without its sign. */
export function relationName(edge) {
  return edge.negated && !edge.equality ? edge.name.replace(/^not /, '') : edge.name;
}

/** How an edge looks; (in)equality and groups are told apart from other conditions. */
export function lookOf(edge) {
  if (edge.look !== 'plain' && edge.look !== 'negated') return edge.look;
  if (edge.equality) return edge.negated ? 'inequality' : 'equality';
  return edge.look === 'plain' && edge.frame !== null ? 'group' : edge.look;
}

function drawFrame({ caption, look, x, y, width, height, caption_x, caption_y }) {
  const name = look === 'denied' && caption === 'not' ? 'group' : look;
  const text = name === 'group' ? 'no such path' : caption;
  const corner = { x: x - width / 2, y: y - height / 2, width, height, rx: 10 };
  return svg(
    'g',
    { class: `frame look-${name}` },
    svg('rect', corner),
    svg('text', { class: 'caption', x: caption_x, y: caption_y + 4 }, text),
  );
}

function drawEdge(graph, edge, number, onclick) {
  const look = lookOf(edge);
  const top = edge.y + 4 - (edge.words ? 8.5 : 0);
  const label = edge.equality ? edge.name : `${edge.negated ? 'not ' : ''}${relationName(edge)}`;
  return svg(
    'g',
    {
      class: `edge look-${look}`,
      ...asButton(edgeText(graph, edge), onclick && ((target) => onclick(number, target))),
    },
    svg('title', {}, edgeText(graph, edge)),
    svg('rect', { class: 'ground', ...box(edge), rx: 4 }),
    svg('path', { class: 'reach', d: edge.path }),
    svg('path', { class: 'line', d: edge.path }),
    edge.arrow ? arrow(edge.tip) : null,
    svg(
      'text',
      { class: edge.equality ? 'sign' : 'relation', x: edge.x, y: top },
      shortened(label),
    ),
    edge.words ? svg('text', { class: 'words', x: edge.x, y: top + 17 }, edge.words) : null,
  );
}

function drawNode(node, number, onclick) {
  const radius = node.kind === 'constant' ? 7 : Math.min(node.width, node.height) / 2;
  return svg(
    'g',
    {
      class: `node ${node.kind}`,
      ...asButton(nodeText(node), onclick && ((target) => onclick(number, target))),
    },
    svg('title', {}, nodeText(node)),
    svg('rect', { ...box(node), rx: radius }),
    svg(
      'text',
      { x: node.x, y: node.y + 5 },
      node.tag ? svg('tspan', { class: 'tag' }, `${node.tag} `) : null,
      shortened(node.label),
    ),
  );
}

function box({ x, y, width, height }) {
  return { x: x - width / 2, y: y - height / 2, width, height };
}

function arrow({ x, y, direction }) {
  const back = x - direction * ARROW;
  return svg('polygon', { class: 'arrow', points: `${x},${y} ${back},${y - 5} ${back},${y + 5}` });
}

/** The attributes that make a shape a button, for the mouse, the keyboard and screen readers. */
function asButton(name, onclick) {
  if (!onclick) return {};
  return {
    role: 'button',
    tabindex: 0,
    'aria-label': name,
    onclick: (event) => onclick(event.currentTarget),
    onkeydown: (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      onclick(event.currentTarget);
    },
  };
}

/** A piece of a line, as edges of a look have it. */
export function sample(look, width) {
  const size = { viewBox: `0 0 ${width} 12`, width, height: 12 };
  const line = svg('path', { class: 'line', d: `M1 6H${width - 1}` });
  return svg('svg', { class: `sample look-${look}`, ...size, 'aria-hidden': 'true' }, line);
}

/** Samples of looks with their meaning. */
export function legend(looks) {
  const items = [...looks].map((look) => html('li', {}, sample(look, 38), LOOKS[look] ?? look));
  return html('ul', { class: 'legend', 'aria-label': 'Legend' }, items);
}
