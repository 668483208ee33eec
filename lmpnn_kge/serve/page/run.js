/** The page of a run: figures, calibration, where it came from, and its report. */

import { Latest } from './api.js';
import { calibrationChart } from './chart.js';
import { html, progress } from './dom.js';
import { count, methodName } from './names.js';
import { toHash } from './state.js';

/** Averages over types without negation, and over those with it. */
const AVERAGES = ['A_P', 'A_N'];

/** Calibrations that are not those of a method. */
const OF_EDGES = { calibrated: 'Single edges, calibrated', raw: 'Single edges, raw scores' };

export class RunView {
  #request = new Latest();
  #shown = null;

  constructor() {
    this.title = html('h1', { tabindex: -1 }, 'Run');
    this.content = html('div', { class: 'run' });
    this.element = html(
      'div',
      { class: 'view' },
      html('div', { class: 'page-head' }, this.title),
      this.content,
    );
  }

  /** @param {import('./state.js').State} state */
  update({ run }) {
    if (this.#shown === run) return;
    this.#shown = run;
    this.#load(run);
  }

  async #load(name) {
    this.content.replaceChildren(progress('Loading …'));
    const outcome = await this.#request.get('/api/run', { run: name || undefined });
    if (!outcome) return;
    if (outcome.error) {
      this.content.replaceChildren(
        html('p', { class: 'card error', role: 'alert' }, outcome.error.message),
      );
      return;
    }
    const run = outcome.value;
    this.title.textContent = run.title;
    this.content.replaceChildren(
      overview(run),
      figures(run.results),
      calibration(run.calibration ?? {}),
      provenance(run),
    );
  }
}

function overview(run) {
  const { graph } = run;
  const sizes = graph && [
    [graph.entities, 'entities'],
    [graph.relations, 'relations'],
    [graph.train, 'training edges'],
    [graph.valid, 'validation edges'],
    [graph.test, 'test edges'],
  ];
  const size = ([number, noun]) =>
    html('li', {}, html('strong', {}, count(number)), html('span', { class: 'muted' }, noun));
  return html(
    'section',
    { class: 'card' },
    sizes
      ? html('ul', { class: 'sizes', 'aria-label': 'Size of the graph' }, sizes.map(size))
      : null,
    (run.notes ?? []).map((note) => html('p', { class: 'note' }, note)),
    html(
      'p',
      { class: 'row' },
      html('a', { href: `/report/${encodeURIComponent(run.name)}` }, 'Report of this run'),
      html('a', { href: toHash({ run: run.name }) }, 'Ask a question'),
    ),
  );
}

/** Tables of MRR by type of query and method, the best of each type in bold. */
function figures(results) {
  const methods = Object.keys(results ?? {});
  if (!methods.length) {
    return html(
      'section',
      { class: 'card' },
      html('h2', {}, 'Figures'),
      html('p', {}, 'This run has no test results.'),
    );
  }
  const types = [...new Set(methods.flatMap((method) => Object.keys(results[method].types)))];
  const value = (method, column) =>
    results[method][column] ?? results[method].types[column]?.mrr ?? null;
  const averages = AVERAGES.filter((name) =>
    methods.some((method) => value(method, name) !== null),
  );
  return html(
    'section',
    { class: 'card' },
    html('h2', {}, 'Figures'),
    html(
      'p',
      { class: 'muted' },
      'Mean reciprocal rank on test queries, in percent, by type of query.',
    ),
    figureTable(methods, [...averages, ...types], value),
  );
}

function figureTable(methods, columns, value) {
  const best = (column) => Math.max(...methods.map((method) => value(method, column) ?? -1));
  const isBest = (figure, column) => methods.length > 1 && figure === best(column);
  const cell = (method, column) => {
    const figure = value(method, column);
    const text = figure === null ? '–' : (figure * 100).toFixed(1);
    return html('td', {}, isBest(figure, column) ? html('strong', {}, text) : text);
  };
  return html(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Figures by method and type' },
    html(
      'table',
      { class: 'figures' },
      html(
        'thead',
        {},
        html(
          'tr',
          {},
          html('th', { scope: 'col' }, 'Type'),
          methods.map((method) => html('th', { scope: 'col' }, methodName(method))),
        ),
      ),
      html(
        'tbody',
        {},
        columns.map((column) =>
          html(
            'tr',
            {},
            html('th', { scope: 'row' }, column),
            methods.map((method) => cell(method, column)),
          ),
        ),
      ),
    ),
  );
}

function calibration(methods) {
  const charts = Object.entries(methods).map(([method, { error, bins }]) => {
    const name = OF_EDGES[method] ?? methodName(method);
    const text = `${name}: mean error ${(error * 100).toFixed(1)} points`;
    return html('figure', {}, calibrationChart(name, bins), html('figcaption', {}, text));
  });
  if (!charts.length) return '';
  return html(
    'section',
    { class: 'card' },
    html('h2', {}, 'Calibration'),
    html(
      'p',
      { class: 'muted' },
      'How many of the predictions with a probability hold. On the line, both are the same.',
    ),
    html('div', { class: 'charts' }, charts),
  );
}

function provenance({ provenance: facts = [], settings = {} }) {
  const pairs = (entries) =>
    html(
      'dl',
      { class: 'facts-list' },
      entries.flatMap(([name, value]) => [
        html('dt', {}, name),
        html('dd', {}, typeof value === 'object' ? JSON.stringify(value) : String(value)),
      ]),
    );
  return html(
    'section',
    { class: 'card' },
    html('h2', {}, 'Provenance'),
    pairs(facts.map(({ name, value }) => [name, value])),
    Object.keys(settings).length
      ? html('details', {}, html('summary', {}, 'Settings'), pairs(Object.entries(settings)))
      : null,
  );
}
