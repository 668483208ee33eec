/** The query graph, in which a click on a node or an edge changes the question.
 *
 * The text of the question is the only state: every action asks the server for the changed text.
 */

import { Latest } from './api.js';
import { announce, button, html } from './dom.js';
import { drawGraph, legend, lookOf, NOTHING } from './graph.js';
import { conditionForm, edgeActions, nodeActions } from './builder_forms.js';

export class Builder {
  #editing = new Latest();
  #graphs = [];
  #question = '';
  #focusAfter = null; // the number of a disjunct whose ? takes the focus once it is drawn

  /** @param {import('./state.js').Store} store */
  constructor(store) {
    this.store = store;
    this.parts = html('div', { class: 'parts' });
    this.panel = html('div', { class: 'actions', onkeydown: (event) => this.#key(event) });
    this.foot = html('div', { class: 'builder-foot' });
    this.element = html(
      'section',
      { class: 'builder', 'aria-labelledby': 'graph-title' },
      html(
        'div',
        { class: 'section-head' },
        html('h2', { id: 'graph-title' }, 'Query graph'),
        html('p', { class: 'muted' }, 'Click a node or an edge to change the question.'),
      ),
      this.parts,
      this.panel,
      this.foot,
    );
    this.showNothing();
  }

  /** Draw the answer of /api/draw. */
  show(drawing) {
    this.#question = drawing.formula;
    this.#draw(drawing.disjuncts);
    this.foot.replaceChildren(
      button('Add an OR part', () => this.#openPart(), { class: 'quiet' }),
      ...(drawing.sparql === null ? [] : [asSparql(drawing.sparql)]),
    );
  }

  /** Draw a question that has no condition yet. */
  showNothing() {
    this.#question = '';
    this.#draw([]);
    this.foot.replaceChildren();
  }

  /** Say that the graph is about to change. */
  showBusy() {
    this.parts.setAttribute('aria-busy', 'true');
  }

  /** Keep the graph of the last correct question, but show that it is not the present one. */
  showStale() {
    this.parts.setAttribute('aria-busy', 'false');
    this.parts.classList.add('stale');
    this.#closePanel();
  }

  #draw(graphs) {
    this.#graphs = graphs;
    const drawn = (graphs.length ? graphs : [NOTHING]).map((graph, part) =>
      this.#part(graph, part),
    );
    this.parts.replaceChildren(...drawn);
    this.parts.classList.remove('stale');
    this.parts.setAttribute('aria-busy', 'false');
    const looks = new Set(
      graphs.flatMap((graph) => [...graph.edges.map(lookOf), ...graph.frames.map(() => 'group')]),
    );
    looks.delete('plain');
    if (looks.size) this.parts.append(legend(looks));
    this.#closePanel();
    for (const frame of this.parts.querySelectorAll('.graph-frame')) {
      frame.scrollLeft = frame.scrollWidth; // the answer is on the right
    }
    if (this.#focusAfter !== null) this.#focusAnswer(this.#focusAfter);
    this.#focusAfter = null;
  }

  #part(graph, part) {
    const several = this.#graphs.length > 1;
    const name = several ? `Query graph, part ${part + 1}` : 'Query graph';
    const picture = drawGraph(graph, name, {
      onnode: (node, target) => this.#open(target, nodeActions(this.#context(graph, part), node)),
      onedge: (edge, target) => this.#open(target, edgeActions(this.#context(graph, part), edge)),
    });
    if (!several) return picture;
    const remove = button(
      'Remove part',
      () => this.#edit({ action: 'remove-part', disjunct: part }),
      {
        class: 'quiet',
        'aria-label': `Remove part ${part + 1}`,
      },
    );
    const title = html('h3', {}, part ? 'or' : 'Either');
    return html(
      'div',
      { class: 'part' },
      html('div', { class: 'part-head' }, title, remove),
      picture,
    );
  }

  /** What the forms need. */
  #context(graph, part) {
    return {
      graph,
      run: this.store.state.run || undefined,
      edit: (fields) => this.#edit({ disjunct: part, ...fields }),
    };
  }

  #openPart() {
    const context = this.#context(NOTHING, this.#graphs.length);
    const form = conditionForm(context, 0);
    this.#open(null, [html('h3', {}, 'A new OR part'), form]);
  }

  #open(target, content) {
    this.#closePanel();
    this.target = target;
    target?.classList.add('selected');
    const close = button('Close', () => this.#leave(), { class: 'quiet close' });
    this.panel.replaceChildren(...content.filter(Boolean), close);
    this.panel.hidden = false;
    this.panel.querySelector('button, input, select').focus();
  }

  #closePanel() {
    this.target?.classList.remove('selected');
    this.panel.hidden = true;
    this.panel.replaceChildren();
  }

  /** Close the panel and return to the node or edge. */
  #leave() {
    const { target } = this;
    this.#closePanel();
    target?.focus();
  }

  #key(event) {
    if (event.key === 'Escape') this.#leave();
  }

  async #edit(fields) {
    const outcome = await this.#editing.call('edit', { question: this.#question, ...fields });
    if (!outcome) return;
    if (outcome.error) {
      this.panel.querySelector('.error')?.remove();
      this.panel.prepend(html('p', { class: 'error', role: 'alert' }, outcome.error.message));
      return;
    }
    this.#focusAfter = fields.disjunct;
    this.store.edit(outcome.value.question);
    announce(outcome.value.question || 'The question is empty');
  }

  #focusAnswer(part) {
    const pictures = this.parts.querySelectorAll('.graph');
    const picture = pictures[Math.min(part, pictures.length - 1)];
    picture?.querySelector('.node.free')?.focus({ preventScroll: true });
  }
}

/** The question as SPARQL, to copy. */
function asSparql(sparql) {
  const copy = button('Copy', async () => {
    await navigator.clipboard.writeText(sparql);
    announce('Copied');
    copy.textContent = 'Copied';
  });
  return html(
    'details',
    { class: 'as-sparql' },
    html('summary', {}, 'As SPARQL'),
    html('pre', { tabindex: 0, 'aria-label': 'The question as SPARQL' }, sparql),
    navigator.clipboard ? copy : null,
  );
}
