/** Elements made in code. Text is always added as text, never as markup. */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * An HTML element. Options that begin with "on" are listeners, all others attributes; an attribute
 * that is false or null is left out, and one that is true has no value.
 * @param {string} tag
 * @param {Object<string, any>} options
 * @param {...(Node | string | null | Array<Node | string | null>)} children
 */
export function html(tag, options = {}, ...children) {
  return filled(document.createElement(tag), options, children);
}

/** The same for SVG. */
export function svg(tag, options = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), options, children);
}

function filled(element, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text for screen readers only. */
export function spoken(text) {
  return html('span', { class: 'hidden-text' }, text);
}

/** A button that does not submit a form. */
export function button(text, onclick, options = {}) {
  return html('button', { type: 'button', onclick, ...options }, text);
}

/** That something is under way, and perhaps a button to cancel it. */
export function progress(text, cancel = null) {
  const spinner = html('span', { class: 'spinner', 'aria-hidden': 'true' });
  return html('div', { class: 'progress' }, spinner, text, cancel);
}

let ids = 0;

/** An id that no other element has. */
export function newId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** Announce a change to screen readers. */
export function announce(text) {
  document.getElementById('status').textContent = text;
}

/** The shape before a mark, so that marks differ by more than colour and words. */
export function shape(mark) {
  const shapes = {
    known: svg('circle', { cx: 6, cy: 6, r: 4.5 }),
    predicted: svg('path', { d: 'M6 .8 11.2 6 6 11.2 .8 6Z', class: 'outline' }),
    confirmed: svg('path', { d: 'M1.5 6.5 4.7 9.7 10.5 2.8', class: 'outline' }),
    contradicted: svg('path', { d: 'M2 2 10 10M10 2 2 10', class: 'outline' }),
    unchecked: svg('path', { d: 'M2 6H10', class: 'outline' }),
  };
  const options = { class: `shape ${mark}`, viewBox: '0 0 12 12', 'aria-hidden': 'true' };
  return svg('svg', options, shapes[mark]);
}
