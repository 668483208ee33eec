/** What the page shows, kept in the part of the address after #, so that a link reproduces it. */

/** Answers that are asked for at first, and with each "more". */
export const PAGE = 10;

/** The views, by the first word after #/. */
const VIEWS = ['ask', 'entity', 'run'];

/**
 * @typedef {Object} State
 * @property {string} view ask, entity or run
 * @property {string} run the name of a run; "" for the first
 * @property {string} question the text in the box
 * @property {boolean} asked whether answers to it are shown
 * @property {string[]} methods those whose answers are shown; none is the default of the run
 * @property {boolean} compare whether several methods can be chosen
 * @property {number} rows answers of each method
 * @property {string} filter text that answers contain
 * @property {string} mark all, known, predicted or confirmed
 * @property {string} answer the id of the answer that is explained
 * @property {string} by the method whose answer it is
 * @property {number} reason the number of the reason that is shown
 * @property {string} name the entity that is shown
 */

/** @type {State} */
export const EMPTY = {
  view: 'ask',
  run: '',
  question: '',
  asked: false,
  methods: [],
  compare: false,
  rows: PAGE,
  filter: '',
  mark: 'all',
  answer: '',
  by: '',
  reason: 0,
  name: '',
};

/** The fields of the address: for each its key, and how it is read. */
const FIELDS = {
  run: ['run', String],
  question: ['q', String],
  asked: ['asked', (text) => text === 'true'],
  methods: ['method', (text) => text.split(',').filter(Boolean)],
  compare: ['compare', (text) => text === 'true'],
  rows: ['rows', (text) => Math.max(1, Number.parseInt(text, 10) || PAGE)],
  filter: ['filter', String],
  mark: ['mark', String],
  answer: ['answer', String],
  by: ['by', String],
  reason: ['reason', (text) => Math.max(0, Number.parseInt(text, 10) || 0)],
  name: ['name', String],
};

/** @returns {State} */
export function fromHash(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const values = new URLSearchParams(query);
  const state = { ...EMPTY, view: VIEWS.includes(path) ? path : 'ask' };
  for (const [field, [key, readValue]] of Object.entries(FIELDS)) {
    if (values.has(key)) state[field] = readValue(values.get(key));
  }
  return state;
}

/** The address of a state; fields as in an empty one are left out. */
export function toHash(changes) {
  const state = { ...EMPTY, ...changes };
  const values = new URLSearchParams();
  for (const [field, [key]] of Object.entries(FIELDS)) {
    if (String(state[field]) !== String(EMPTY[field])) values.set(key, String(state[field]));
  }
  const query = values.toString();
  return `#/${state.view}${query ? `?${query}` : ''}`;
}

/** The state of the page. Everything that shows a part of it listens to changes. */
export class Store {
  #listeners = [];

  constructor() {
    this.state = fromHash(location.hash);
    addEventListener('popstate', () => this.#change(fromHash(location.hash)));
  }

  /** Call a function with the state and the one before it, after each change. */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /** Change some fields; a step is an entry in the history, to which one can go back. */
  set(changes, { step = false } = {}) {
    const state = { ...this.state, ...changes };
    const hash = toHash(state);
    if (hash !== location.hash) {
      if (step) history.pushState(null, '', hash);
      else history.replaceState(null, '', hash);
    }
    this.#change(state);
  }

  /** Put another question into the box; the answers, if any, are then those to an older one. */
  edit(question) {
    this.set({ question, asked: false, answer: '', by: '', reason: 0 });
  }

  /** Ask the question in the box, or another one. */
  ask(question = this.state.question) {
    const { run, methods, compare, mark } = this.state;
    const asked = question.trim() !== '';
    this.set({ ...EMPTY, run, methods, compare, mark, question, asked }, { step: true });
  }

  #change(state) {
    const before = this.state;
    this.state = state;
    for (const listener of this.#listeners) listener(state, before);
  }
}
