/** Charts drawn as SVG. */

import { svg } from './dom.js';
import { count } from './names.js';

const SIZE = 180;
const LEFT = 40;
const RIGHT = 20;
const BOTTOM = 26;

/**
 * The rate of predictions that hold by the mean of their probability, a point for each bin.
 * @param {string} method
 * @param {{probability: number, share: number, count: number}[]} bins
 */
export function calibrationChart(method, bins) {
  const filled = bins.filter((bin) => bin.count > 0);
  const most = Math.max(1, ...filled.map((bin) => bin.count));
  const x = (share) => LEFT + share * SIZE;
  const y = (share) => 8 + (1 - share) * SIZE;
  const ticks = [0, 0.5, 1];
  const points = filled.map((bin) => {
    const radius = 3 + 4 * Math.sqrt(bin.count / most);
    const shares = `${pct(bin.probability)} predicted, ${pct(bin.share)} hold`;
    const text = `${shares}, ${count(bin.count)} predictions`;
    return svg(
      'circle',
      { cx: x(bin.probability), cy: y(bin.share), r: radius },
      svg('title', {}, text),
    );
  });
  const line = filled.map((bin) => `${x(bin.probability)},${y(bin.share)}`).join(' ');
  const summary = filled.map((bin) => `${pct(bin.probability)}: ${pct(bin.share)}`).join(', ');
  return svg(
    'svg',
    {
      class: 'chart',
      viewBox: `0 0 ${LEFT + SIZE + RIGHT} ${SIZE + BOTTOM + 24}`,
      role: 'img',
      'aria-label': `Calibration of ${method}; predicted and true: ${summary}`,
    },
    ticks.flatMap((share) => [
      svg('line', { class: 'grid', x1: x(0), x2: x(1), y1: y(share), y2: y(share) }),
      svg('line', { class: 'grid', x1: x(share), x2: x(share), y1: y(0), y2: y(1) }),
      svg('text', { x: x(share), y: y(0) + 16, 'text-anchor': 'middle' }, pct(share)),
      svg('text', { x: x(0) - 6, y: y(share) + 4, 'text-anchor': 'end' }, pct(share)),
    ]),
    svg('line', { class: 'ideal', x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    svg('polyline', { points: line }),
    points,
    svg('text', { x: x(0.5), y: y(0) + 34, 'text-anchor': 'middle' }, 'predicted'),
  );
}

function pct(share) {
  return `${Math.round(share * 100)}%`;
}
