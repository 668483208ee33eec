/** The box for the question: completion, the check as one types, examples, and SPARQL. */

import { Latest, Pause } from './api.js';
import { announce, button, html } from './dom.js';
import { characters, counted, position } from './names.js';
import { Suggestions } from './suggestions.js';

export class QuestionBox {
  #completion = new Latest();

  /** @param {import('./state.js').Store} store */
  constructor(store) {
    this.store = store;
    this.field = html('textarea', {
      id: 'question',
      rows: 1,
      'aria-describedby': 'question-help check',
      autocomplete: 'off',
      autocapitalize: 'off',
      autocorrect: 'off',
      spellcheck: 'false',
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event),
    });
    this.suggestions = new Suggestions(this.field, 'Suggestions', (item) => this.#take(item));
    this.check = html('div', { id: 'check', class: 'check' });
    this.examples = html('div', { class: 'examples' });
    this.exampleList = html(
      'details',
      { class: 'example-list' },
      html('summary', {}, 'Examples'),
      this.examples,
    );
    this.element = html(
      'form',
      { class: 'question', onsubmit: (event) => this.#submit(event) },
      html('label', { for: 'question' }, 'Question'),
      html(
        'div',
        { class: 'question-line' },
        html('div', { class: 'anchor' }, this.field, this.suggestions.element),
        html('button', { type: 'submit', class: 'primary' }, 'Ask'),
      ),
      this.#help(),
      this.check,
      this.exampleList,
    );
    this.pause = new Pause(() => this.#complete(), 120);
    addEventListener('resize', () => this.#fit());
  }

  /** @param {import('./state.js').State} state */
  update(state) {
    if (this.field.value !== state.question) this.field.value = state.question;
    if (state.question === '') this.exampleList.open = true;
    if (state.asked) this.exampleList.open = false;
    this.#fit();
  }

  /** Offer the examples of a run. */
  showExamples(examples) {
    const chip = ({ question, type }) =>
      button(question, () => this.store.ask(question), { class: 'chip formula', title: type });
    this.examples.replaceChildren(...examples.map(chip));
    this.exampleList.hidden = examples.length === 0;
    this.field.placeholder = examples[0]?.question ?? '';
  }

  /** Say how the question was understood. */
  showDrawing(drawing) {
    this.field.removeAttribute('aria-invalid');
    const notes = drawing.notes.map((note) => html('p', { class: 'note' }, note));
    this.check.replaceChildren(...notes, drawing.is_sparql ? this.#asFormula(drawing) : '');
  }

  /** Say what is wrong with it, and where; a question that ends too early is only unfinished. */
  showError(error) {
    const text = this.field.value;
    const isUnfinished =
      error.column >= characters(text, text.trimEnd().length) && !this.store.state.asked;
    this.field.setAttribute('aria-invalid', String(!isUnfinished));
    const excerpt = error.excerpt && html('pre', { class: 'excerpt', tabindex: 0 }, error.excerpt);
    const message = html('p', { class: isUnfinished ? 'note' : 'error' }, error.message);
    this.check.classList.toggle('unfinished', isUnfinished);
    this.check.replaceChildren(message, excerpt ?? '');
  }

  showNothing() {
    this.field.removeAttribute('aria-invalid');
    this.check.replaceChildren();
  }

  #help() {
    const words = ['?', ' is the answer, ', '?x', ' some entity; combine with ', '& | ! = !='];
    return html(
      'p',
      { id: 'question-help', class: 'muted help' },
      words.map((word) => (word.startsWith(' ') ? word : html('code', {}, word))),
      '. You can also paste SPARQL, or click in the graph below.',
    );
  }

  #asFormula(drawing) {
    return html(
      'p',
      { class: 'note as-formula' },
      'This is SPARQL. As a formula: ',
      html('code', {}, drawing.formula),
      ' ',
      button('Use the formula', () => this.#use(drawing.formula)),
    );
  }

  #use(formula) {
    this.store.edit(formula);
    this.field.focus();
  }

  #submit(event) {
    event.preventDefault();
    this.pause.cancel();
    this.#completion.cancel();
    this.suggestions.close();
    this.store.ask();
  }

  #typed() {
    this.store.edit(this.field.value);
    this.pause.begin();
  }

  #key(event) {
    if (this.suggestions.handle(event)) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) this.#submit(event);
    else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      this.#complete();
    }
  }

  async #complete() {
    const { field } = this;
    const [text, end] = [field.value, field.selectionEnd];
    if (field.selectionStart !== end || document.activeElement !== field) return;
    const { run } = this.store.state;
    const fields = { run: run || undefined, text, cursor: characters(text, end) };
    const outcome = await this.#completion.call('complete', fields);
    if (!outcome || field.value !== text || field.selectionEnd !== end) return;
    const items = outcome.value?.items ?? [];
    this.completion = outcome.value;
    this.suggestions.show(items);
    if (items.length) announce(counted(items.length, 'suggestion'));
  }

  /** Put a suggestion in place of what was typed, and what comes after it. */
  #take(item) {
    const { field, completion } = this;
    const text = field.value;
    const [start, end] = [completion.start, completion.end].map((n) => position(text, n));
    const next = nextSign(completion.role, text.slice(0, start), text.slice(end));
    field.setRangeText(item.insert + next, start, end, 'end');
    this.store.edit(field.value);
    if (next) this.#complete();
  }

  /** As high as its text. */
  #fit() {
    if (!this.field.offsetParent) return; // another view is shown
    this.field.style.height = 'auto';
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }
}

/** The sign that follows a name: a bracket after a relation, a comma after the first entity. */
function nextSign(role, before, after) {
  if (/^\s*[(),]/.test(after)) return '';
  if (role === 'relation') return '(';
  if (role !== 'entity') return '';
  const outside = before.replace(/"(?:[^"\\]|\\.)*"/g, '').trimEnd();
  if (outside.endsWith('(')) return ', ';
  return outside.endsWith(',') ? ')' : '';
}
