// The charts of a simulation: requests over time, and refusals by limit.

import { BOTTOM, LEFT, RIGHT, TOP, area, ceiling, cursor, gridLines, nearest, path, swatch } from './chart.js';
import { element, fill, setText, shape } from './dom.js';
import { count, many } from './format.js';

const HEIGHT = 200;
/// The time labels below a chart, at most.
const TICKS = 5;
/// The limits in the chart of refusals by limit.
const LIMITS = 8;
const DAY = 86_400_000;

/// Creates a chart of the requests of a simulation over time, and of the refusals of each policy.
export function timelineChart([now, other]) {
  const step = now.over_time.step_ms;
  const lines = [
    { key: 'admitted', label: 'Requests', points: points(now, 'requests') },
    { key: 'refused', label: other ? 'Refused by the current policy' : 'Refused', points: points(now, 'refused') },
    other && { key: 'wouldRefuse', label: 'Refused by the other policy', points: points(other, 'refused', now) },
  ].filter(Boolean);
  const svg = shape('svg', { class: 'chart', role: 'img', height: HEIGHT, 'aria-label': describeChart(lines, step) });
  const values = new Map(lines.map(({ key }) => [key, element('span', { class: 'figure' })]));
  const when = element('li', { class: 'when' });
  const node = element('figure', { class: 'traffic' },
    element('figcaption', {}, element('h2', {}, `Requests per ${period(step)}`),
      element('ul', { class: 'legend' }, when, lines.map(({ key, label }) =>
        element('li', {}, swatch(key), label, values.get(key))))),
    svg, table(lines, step));
  const draw = (hovered) => {
    const at = drawn(svg, lines, step, hovered);
    setText(when, at === null ? 'total' : moment(at, step));
    for (const { key, points: all } of lines) {
      const total = all.reduce((sum, [, value]) => sum + value, 0);
      setText(values.get(key), count(at === null ? total : nearest(all, at)?.[1] ?? 0));
    }
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    draw((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT));
  });
  svg.addEventListener('pointerleave', () => draw(null));
  // The width is known once the chart is in the page.
  new ResizeObserver(() => draw(null)).observe(svg);
  return node;
}

/// Creates a chart of the refusals by each limit, or nothing if no limit refused.
export function limitsChart([now, other]) {
  const names = [...new Set([now, other].filter(Boolean).flatMap(({ limits }) => Object.keys(limits)))];
  const refused = (outcome, name) => outcome?.limits[name]?.refused ?? 0;
  const rows = names.map((name) => ({ name, now: refused(now, name), other: refused(other, name) }))
    .filter((row) => row.now || row.other)
    .sort((a, b) => Math.max(b.now, b.other) - Math.max(a.now, a.other));
  if (!rows.length) return null;
  const most = Math.max(...rows.flatMap((row) => [row.now, row.other]));
  const bar = (key, value) => element('div', { class: 'length' },
    shape('svg', { height: 10, width: '100%', 'aria-hidden': 'true' },
      shape('rect', { class: `fill ${key}`, height: 10, rx: 2, width: `${(100 * value) / most}%` })),
    element('span', { class: 'figure' }, count(value)));
  return element('figure', { class: 'traffic' },
    element('figcaption', {}, element('h2', {}, 'Refusals by limit'), other && element('ul', { class: 'legend' },
      element('li', {}, swatch('refused'), 'Current policy'), element('li', {}, swatch('wouldRefuse'), 'Other policy'))),
    element('dl', { class: 'bars' }, rows.slice(0, LIMITS).map((row) => [
      element('dt', {}, row.name),
      element('dd', {}, bar('refused', row.now), other && bar('wouldRefuse', row.other)),
    ])),
    rows.length > LIMITS && element('p', { class: 'words' }, `${many(rows.length - LIMITS, 'more limit')} refused fewer requests.`));
}

/// Returns the counts of an outcome as points. `base` is the outcome with the times of the chart.
function points({ over_time: { points: all } }, name, base = null) {
  const known = new Map(all.map((point) => [Date.parse(point.time), point[name]]));
  const times = base ? base.over_time.points.map(({ time }) => Date.parse(time)) : [...known.keys()];
  return times.map((time) => [time, known.get(time) ?? 0]);
}

/// Draws the lines, and returns the time of the step at the pointer.
function drawn(svg, lines, step, hovered) {
  const width = Math.max(240, svg.clientWidth || 640);
  svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
  const [first, last] = [lines[0].points[0]?.[0] ?? 0, lines[0].points.at(-1)?.[0] ?? 0];
  const span = Math.max(last - first, step);
  const top = ceiling(Math.max(0, ...lines.flatMap(({ points: all }) => all.map(([, value]) => value))));
  const x = (at) => LEFT + ((width - LEFT - RIGHT) * (at - first)) / span;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(value, top) / top);
  const ticks = Math.max(1, Math.min(width < 420 ? 2 : TICKS, Math.round(span / step)));
  const times = Array.from({ length: ticks + 1 }, (_, tick) => {
    const at = first + (span * tick) / ticks;
    const anchor = tick === 0 ? 'start' : tick === ticks ? 'end' : 'middle';
    return shape('text', { class: 'tick', x: x(at), y: HEIGHT - 6, 'text-anchor': anchor }, moment(at, step, span));
  });
  const paths = lines.map(({ key, points: all }) => shape('path', { class: `line ${key}`, d: path(all, x, y) }));
  const at = hovered === null ? null : nearest(lines[0].points, first + span * Math.min(1, Math.max(0, hovered)))?.[0] ?? null;
  fill(svg, gridLines(width, top, y, count), times, area(lines[0], x, y), paths,
    at !== null && cursor(lines, at, HEIGHT, x, y));
  return at;
}

/// The same numbers as a table, without the steps in which nothing was requested.
function table(lines, step) {
  const rows = lines[0].points.map(([at], index) => [at, lines.map(({ points: all }) => all[index][1])])
    .filter(([, values]) => values.some((value) => value > 0));
  return element('details', {},
    element('summary', {}, 'Show as a table'),
    element('table', { class: 'narrow' },
      element('caption', { class: 'unseen' }, `Requests per ${period(step)}`),
      element('thead', {}, element('tr', {}, ['Time (UTC)', ...lines.map(({ label }) => label)].map((label, index) =>
        element('th', { scope: 'col', class: index ? 'number' : null }, label)))),
      element('tbody', {}, rows.map(([at, values]) => element('tr', {},
        element('th', { scope: 'row' }, moment(at, step, DAY)),
        values.map((value) => element('td', { class: 'number' }, count(value))))))));
}

function describeChart(lines, step) {
  const totals = lines.map(({ label, points: all }) => `${label.toLowerCase()} ${count(all.reduce((sum, [, value]) => sum + value, 0))}`);
  return `Requests per ${period(step)}; in total ${totals.join(', ')}`;
}

/// Returns the length of a step in words.
function period(step) {
  const [size, unit] = [[7 * DAY, 'week'], [DAY, 'day'], [3_600_000, 'hour'], [60_000, 'minute'], [1_000, 'second']]
    .find(([length]) => step % length === 0) ?? [1, 'millisecond'];
  return step === size ? unit : many(step / size, unit);
}

/// Returns a time of the log in UTC, with its day in a chart of more than a day.
function moment(at, step, span = 0) {
  const text = new Date(at).toISOString();
  const time = step % 60_000 ? text.slice(11, 19) : text.slice(11, 16);
  if (step % DAY === 0) return text.slice(5, 10);
  return span >= DAY ? `${text.slice(5, 10)} ${time}` : time;
}
