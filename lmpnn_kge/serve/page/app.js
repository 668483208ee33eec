/** The page: its header, its views, and which of them is shown. */

import { get } from './api.js';
import { AskView } from './ask.js';
import { html } from './dom.js';
import { EntityView } from './entity.js';
import { RunView } from './run.js';
import { EMPTY, Store, toHash } from './state.js';

const PAGES = [
  ['ask', 'Ask'],
  ['entity', 'Entities'],
  ['run', 'Run'],
];

class App {
  /** @param {Object[]} runs as /api/runs lists them */
  constructor(runs) {
    this.runs = runs;
    this.store = new Store();
    this.lastOf = {}; // the last state of each view, to which its link leads
    this.views = {
      ask: new AskView(this.store, () => this.run),
      entity: new EntityView(this.store),
      run: new RunView(),
    };
    this.main = document.getElementById('main');
    this.main.replaceChildren(...Object.values(this.views).map((view) => view.element));
    this.links = PAGES.map(([view, text]) => html('a', { 'data-view': view }, text));
    document.getElementById('pages').replaceChildren(...this.links);
    if (runs.length > 1) document.getElementById('run-switch').replaceChildren(...this.#runSwitch());
    this.store.listen((state, before) => this.update(state, before));
    this.update(this.store.state, EMPTY);
  }

  /** The run that is asked. */
  get run() {
    return this.runs.find((run) => run.name === this.store.state.run) ?? this.runs[0];
  }

  update(state, before) {
    this.lastOf[state.view] = state;
    for (const [name, view] of Object.entries(this.views))
      view.element.hidden = name !== state.view;
    this.views[state.view].update(state, before);
    for (const link of this.links) this.#point(link, state);
    if (this.select) this.select.value = this.run.name;
    const title = { ask: state.question, entity: state.name, run: this.run.title }[state.view];
    document.title = title ? `${title} · lmpnn-kge` : 'lmpnn-kge';
    if (state.view !== before.view) this.views[state.view].title.focus({ preventScroll: true });
  }

  /** Let a link lead to where its view was left, with the present run. */
  #point(link, { run, view }) {
    const last = this.lastOf[link.dataset.view];
    const state = last?.run === run ? last : { run, view: link.dataset.view };
    link.href = toHash(state);
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }

  #runSwitch() {
    this.select = html(
      'select',
      { id: 'run', onchange: () => this.#switch(this.select.value) },
      this.runs.map((run) => html('option', { value: run.name }, `${run.name}: ${run.title}`)),
    );
    return [html('label', { for: 'run', class: 'hidden-text' }, 'Run'), this.select];
  }

  /** The same question to another run; its methods may be others. */
  #switch(name) {
    const { view, question, asked } = this.store.state;
    this.store.set({ ...EMPTY, view, question, asked, run: name }, { step: true });
  }
}

async function start() {
  document.getElementById('skip').addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('main').focus();
  });
  try {
    const [{ runs }, health] = await Promise.all([get('/api/runs'), get('/health')]);
    document.getElementById('version').textContent = `lmpnn-kge ${health.version}`;
    new App(runs);
  } catch (error) {
    const message = html('p', { class: 'card error', role: 'alert' }, error.message);
    document.getElementById('main').replaceChildren(message);
    throw error;
  }
}

start();
