/** The answers that are shown, as files. */

import { button } from './dom.js';

const FIELDS = ['rank', 'id', 'label', 'score', 'probability', 'known', 'confirmed', 'mark'];

/** Buttons that save the answers of all columns that pass a filter. */
export function exportButtons(columns, passes) {
  const results = columns.filter((column) => column.result).map((column) => column.result);
  if (!results.length) return [];
  const lists = results.map((result) => ({ ...result, answers: result.answers.filter(passes) }));
  const saveCsv = () => save('answers.csv', 'text/csv', csv(lists));
  const saveJson = () => save('answers.json', 'application/json', json(lists));
  return [
    button('CSV', saveCsv, { class: 'quiet', 'aria-label': 'Save the answers as CSV' }),
    button('JSON', saveJson, { class: 'quiet', 'aria-label': 'Save the answers as JSON' }),
  ];
}

/** A line for each answer, as RFC 4180 has them. */
export function csv(results) {
  const lines = results.flatMap(({ question, run, method, answers }) =>
    answers.map((answer) => [question, run, method, ...FIELDS.map((field) => answer[field])]),
  );
  const rows = [['question', 'run', 'method', ...FIELDS], ...lines];
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function json(results) {
  const content = results.map(({ question, run, method, notes, answers }) => ({
    question,
    run,
    method,
    notes,
    answers: answers.map((answer) =>
      Object.fromEntries(FIELDS.map((field) => [field, answer[field]])),
    ),
  }));
  return `${JSON.stringify(content, null, 2)}\n`;
}

function cell(value) {
  const text = String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
