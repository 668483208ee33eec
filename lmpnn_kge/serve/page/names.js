/** Names and figures as text. */

const BARE = /^[\p{L}\p{N}\p{M}_/\-:.+]+$/u;
const ESCAPES = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/** Letters of a name in a picture; the server leaves room for as many. */
const LONGEST = 34;

/** A name as a formula has it: in quotes, if it needs them. */
export function quoted(name) {
  if (BARE.test(name)) return name;
  return `"${name.replace(/[\\"\n\t\r]/g, (character) => ESCAPES[character])}"`;
}

/** A name that fits into a picture; of a path, the end says more than the start. */
export function shortened(name) {
  const letters = [...name];
  if (letters.length <= LONGEST) return name;
  if (name.includes('/')) return `…${letters.slice(1 - LONGEST).join('')}`;
  return `${letters.slice(0, LONGEST - 1).join('')}…`;
}

/** A probability with one decimal, but never 0 or 100 for what is not certain. */
export function percent(probability) {
  if (probability > 0 && probability < 0.0005) return '<0.1%';
  if (probability < 1 && probability >= 0.9995) return '>99.9%';
  return `${(probability * 100).toFixed(1)}%`;
}

/** A probability without decimals, as in pictures. */
export function wholePercent(probability) {
  if (probability < 0.01) return '<1%';
  return probability > 0.99 ? '>99%' : `${Math.round(probability * 100)}%`;
}

/** A score; null stands for minus infinity. */
export function scoreText(score) {
  return score === null ? '−∞' : score.toFixed(3).replace('-', '−');
}

/** A number with separators for thousands. */
export function count(number) {
  return number.toLocaleString('en');
}

/** "1 answer", "2 answers". */
export function counted(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

/** How people write the name of a method. */
export function methodName(method) {
  return { lmpnn: 'LMPNN', 'cqd-beam': 'CQD-Beam', cqd: 'CQD' }[method] ?? method;
}

/** The number of characters before a position in UTF-16, which the browser counts in. */
export function characters(text, position) {
  return [...text.slice(0, position)].length;
}

/** The position in UTF-16 after a number of characters, which the server counts in. */
export function position(text, number) {
  return [...text].slice(0, number).join('').length;
}
