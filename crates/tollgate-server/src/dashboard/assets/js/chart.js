// Line charts as SVG, with the same numbers as a table.

import { element, fill, setText, shape } from './dom.js';
import { clock, rate, duration } from './format.js';

export const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 10, 24];
/// The time spans of a chart in milliseconds, with their numbers of ticks. The shortest span that
/// contains all samples of the range is used.
const SPANS = [[60_000, 4], [120_000, 4], [300_000, 5], [600_000, 5], [900_000, 3], [1_800_000, 6], [3_600_000, 6]];
/// The ranges that a chart can show.
const RANGES = [['Last hour', 3_600_000], ['5 min', 300_000]];
/// The rows of the table below a chart.
const ROWS = 10;

/// The lines of a traffic chart, in the order of the legend. An optional line is shown once it has a
/// value.
export const LINES = [
  { key: 'admitted', label: 'Admitted', hint: 'Requests that were admitted, per second.' },
  { key: 'refused', label: 'Refused', hint: 'Requests that were refused, per second.' },
  { key: 'degraded', label: 'Degraded', hint: 'Decisions of the fallback because the store did not answer, per second. They also count as admitted or refused.' },
];
const SHADOW_LINE = { key: 'wouldRefuse', label: 'Would refuse', hint: 'Requests per second that would have been refused, but were not: the rule is in shadow mode, or the limit is not enforced for the subject.', optional: true };
const LATENCY_LINES = [
  { key: 'p50', label: 'p50', hint: 'Half of the decisions take at most this long.' },
  { key: 'p99', label: 'p99', hint: '99 % of the decisions take at most this long.' },
];

/// The range that all charts show, while the page is open.
let range = RANGES[0][1];

/// Creates a chart of a `Traffic`. `draw(feed, traffic)` draws the current samples.
export function trafficChart(title) {
  return chart(title, [...LINES, SHADOW_LINE], { height: 200, format: rate, unit: ' / s', meaning: 'per second' });
}

/// Creates a chart of the percentiles of durations.
export function latencyChart(title) {
  return chart(title, LATENCY_LINES, { height: 140, format: duration, unit: '', meaning: 'percentiles of durations' });
}

function chart(title, lines, { height, format, unit, meaning }) {
  const svg = shape('svg', { class: 'chart', role: 'img', height });
  const values = new Map(lines.map(({ key }) => [key, element('span', { class: 'figure' })]));
  const entries = new Map(lines.map(({ key, label, hint, optional }) => [key,
    element('li', { title: hint, hidden: Boolean(optional) }, swatch(key), label, values.get(key), unit)]));
  const when = element('li', { class: 'when' }, 'now');
  const [head, rows] = [element('thead'), element('tbody')];
  const details = element('details', {},
    element('summary', {}, 'Show as a table'),
    element('table', { class: 'narrow' },
      element('caption', { class: 'unseen' }, `${title}, the last samples`), head, rows));
  let last = null;
  let hovered = null;
  const again = () => last && draw(...last);
  const node = element('figure', { class: 'traffic' },
    element('figcaption', {}, element('h2', {}, title), ranges(again),
      element('ul', { class: 'legend' }, when, [...entries.values()])),
    svg, details);
  const draw = (feed, source) => {
    if (feed.round < 0) return;
    last = [feed, source];
    const series = lines.map((line) => ({ ...line, points: feed.points(source, line.key, range) }));
    const shown = series.filter(({ optional, points }) => !optional || points.some(([, value]) => value > 0));
    for (const { key } of series) entries.get(key).hidden = !shown.some((line) => line.key === key);
    const plot = drawn(svg, height, shown, { end: feed.time(feed.round), format, hovered });
    setText(when, plot.at === null ? 'now' : clock(plot.at));
    for (const { key, points } of shown) {
      const value = plot.at === null ? feed.now(source, key) : nearest(points, plot.at)?.[1];
      setText(values.get(key), format(value));
    }
    const summary = shown.map(({ key, label }) => `${label.toLowerCase()} ${format(feed.now(source, key))}`);
    svg.setAttribute('aria-label', `${title}, ${meaning}; now ${summary.join(', ')}`);
    if (details.open) table(head, rows, shown, { format, unit });
  };
  details.addEventListener('toggle', again);
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    hovered = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    again();
  });
  svg.addEventListener('pointerleave', () => {
    hovered = null;
    again();
  });
  return { node, draw };
}

/// The buttons that select the range of all charts.
function ranges(changed) {
  const buttons = RANGES.map(([label, span]) => element('button', {
    type: 'button', class: 'range', 'aria-pressed': String(span === range),
    onclick: () => {
      range = span;
      for (const other of document.querySelectorAll('.range')) {
        other.setAttribute('aria-pressed', String(other.textContent === label));
      }
      changed();
    },
  }, label));
  return element('div', { class: 'ranges', role: 'group', 'aria-label': 'Time range' }, buttons);
}

export function swatch(key) {
  return shape('svg', { class: 'swatch', width: 18, height: 10, 'aria-hidden': 'true' },
    shape('line', { class: `line ${key}`, x1: 1, x2: 17, y1: 5, y2: 5 }));
}

/// Draws `lines` up to the time `end`. `hovered` is a position from 0 to 1; the result has its time.
function drawn(svg, height, lines, { end, format, hovered }) {
  const width = Math.max(240, svg.clientWidth || 640);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const first = Math.min(end, ...lines.map(({ points }) => points[0]?.[0] ?? end));
  const fits = SPANS.filter(([longest]) => longest <= range);
  const [span, ticks] = fits.find(([longest]) => end - first <= longest) ?? fits.at(-1);
  const most = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => (Number.isFinite(value) ? value : 0))));
  const top = ceiling(most);
  const x = (at) => LEFT + (width - LEFT - RIGHT) * Math.max(0, 1 - (end - at) / span);
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - Math.min(value, top) / top);
  const grid = gridLines(width, top, y, format);
  // A narrow chart does not have room for all labels.
  const isDropped = (tick) => width < 420 && (ticks % 2 === 0 ? tick % 2 === 1 : tick === 1);
  const times = Array.from({ length: ticks + 1 }, (_, tick) => {
    if (isDropped(tick)) return null;
    const ago = (span * (ticks - tick)) / ticks;
    const anchor = ago === 0 ? 'end' : tick === 0 ? 'start' : 'middle';
    const label = ago === 0 ? 'now' : ago < 60_000 ? `−${ago / 1000} s` : `−${ago / 60_000} min`;
    return shape('text', { class: 'tick', x: x(end - ago), y: height - 6, 'text-anchor': anchor }, label);
  });
  const paths = lines.map(({ key, points }) => shape('path', { class: `line ${key}`, d: path(points, x, y) }));
  const at = hovered === null ? null : end - span * (1 - Math.min(1, Math.max(0, hovered)));
  fill(svg, grid, times, area(lines[0], x, y), paths, at !== null && cursor(lines, at, height, x, y));
  return { at: at === null ? null : nearest(lines[0].points, at)?.[0] ?? null };
}

/// Draws the horizontal lines at zero, half of `top` and `top`, with their values.
export function gridLines(width, top, y, format) {
  return [0, top / 2, top].map((value) => [
    shape('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    shape('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, value ? format(value) : '0'),
  ]);
}

/// Fills the surface below the first line.
export function area({ key, points }, x, y) {
  const known = points.filter(([, value]) => !Number.isNaN(value));
  if (known.length < 2) return null;
  const line = path(known, x, y).slice(1);
  return shape('path', { class: `area ${key}`, d: `M${x(known[0][0]).toFixed(1)} ${y(0)}L${line}L${x(known.at(-1)[0]).toFixed(1)} ${y(0)}Z` });
}

/// Marks the samples at the pointer.
export function cursor(lines, at, height, x, y) {
  const marks = lines.map(({ key, points }) => {
    const found = nearest(points, at);
    return found && shape('circle', { class: `mark ${key}`, cx: x(found[0]), cy: y(found[1]), r: 3.5 });
  });
  const found = nearest(lines[0].points, at);
  const left = x(found ? found[0] : at);
  return [shape('line', { class: 'cursor', x1: left, x2: left, y1: TOP, y2: height - BOTTOM }), marks];
}

/// Returns the known point nearest to the time `at`.
export function nearest(points, at) {
  let best = null;
  for (const point of points) {
    if (Number.isNaN(point[1])) continue;
    if (best === null || Math.abs(point[0] - at) < Math.abs(best[0] - at)) best = point;
  }
  return best;
}

/// Returns the path of a series. A missing sample makes a gap.
export function path(points, x, y) {
  let [line, pen] = ['', 'M'];
  for (const [at, value] of points) {
    if (Number.isNaN(value)) {
      pen = 'M';
      continue;
    }
    line += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  }
  return line;
}

export function ceiling(most) {
  if (most <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((step) => step * size).find((step) => step >= most * 0.999_999);
}

/// Fills a table with the last samples of the lines that are shown.
function table(head, rows, lines, { format, unit }) {
  fill(head, element('tr', {}, ['Time', ...lines.map(({ label }) => `${label}${unit}`)]
    .map((label, index) => element('th', { scope: 'col', class: index ? 'number' : null }, label))));
  fill(rows, lines[0].points.slice(-ROWS).reverse().map(([at]) => element('tr', {},
    element('th', { scope: 'row' }, clock(at)),
    lines.map(({ points }) => element('td', { class: 'number' }, format(points.find(([other]) => other === at)?.[1]))))));
}

/// Draws a small line of `points` without axes, for a table cell. Its right end is the time `end`.
export function spark(svg, points, end, span, key) {
  const [width, height] = [96, 22];
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const most = Math.max(1e-9, ...points.map(([, value]) => value || 0));
  const x = (at) => width - 1 - ((end - at) / span) * (width - 2);
  const y = (value) => height - 2 - (value / most) * (height - 4);
  fill(svg, shape('path', { class: `line ${key}`, d: path(points, x, y) }));
}
