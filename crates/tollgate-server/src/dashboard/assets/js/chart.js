// Line charts as SVG, with the same numbers as a table.

import { element, fill, say, shape } from './dom.js';
import { clock, rate } from './format.js';

const HEIGHT = 200;
const LEFT = 44;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 24;
/// The time spans of a chart in milliseconds, with their numbers of ticks. The shortest span that
/// contains all samples is used.
const SPANS = [[60_000, 4], [120_000, 4], [300_000, 5]];
/// The rows of the table below a chart.
const ROWS = 10;

/// The lines of a traffic chart, in the order of the legend.
export const LINES = [
  { key: 'admitted', label: 'Admitted', hint: 'Requests that were admitted, per second.' },
  { key: 'refused', label: 'Refused', hint: 'Requests that were refused, per second.' },
  { key: 'degraded', label: 'Degraded', hint: 'Decisions of the fallback because the store did not answer, per second. They also count as admitted or refused.' },
];

/// Creates a chart of a `Traffic`. `draw(feed, traffic)` draws the current samples.
export function trafficChart(title) {
  const svg = shape('svg', { class: 'chart', role: 'img', height: HEIGHT });
  const values = new Map(LINES.map(({ key }) => [key, element('span', { class: 'figure' })]));
  const legend = element('ul', { class: 'legend' }, LINES.map(({ key, label, hint }) =>
    element('li', { title: hint }, swatch(key), label, values.get(key), ' / s')));
  const rows = element('tbody');
  const details = element('details', {},
    element('summary', {}, 'Show as a table'),
    element('table', { class: 'narrow' },
      element('caption', { class: 'unseen' }, `${title}, the last samples`),
      element('thead', {}, element('tr', {}, ['Time', ...LINES.map((line) => `${line.label} / s`)]
        .map((label, place) => element('th', { scope: 'col', class: place ? 'number' : null }, label)))),
      rows));
  const node = element('figure', { class: 'traffic' },
    element('figcaption', {}, element('h2', {}, title), legend), svg, details);
  const draw = (feed, traffic) => {
    if (feed.round < 0) return;
    const said = LINES.map(({ key, label }) => {
      const now = rate(traffic[key].at(feed.round));
      say(values.get(key), now);
      return `${label.toLowerCase()} ${now}`;
    });
    svg.setAttribute('aria-label', `${title}, per second; now ${said.join(', ')}`);
    lines(svg, feed, traffic);
    if (details.open) table(rows, feed, traffic);
  };
  return { node, draw };
}

function swatch(key) {
  return shape('svg', { class: 'swatch', width: 18, height: 10, 'aria-hidden': 'true' },
    shape('line', { class: `line ${key}`, x1: 1, x2: 17, y1: 5, y2: 5 }));
}

function lines(svg, feed, traffic) {
  const width = Math.max(240, svg.clientWidth || 640);
  svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
  const rounds = feed.rounds();
  const end = feed.time(feed.round);
  const elapsed = end - feed.time(rounds[0]);
  const [span, ticks] = SPANS.find(([longest]) => elapsed <= longest) ?? SPANS.at(-1);
  const most = Math.max(0, ...LINES.flatMap(({ key }) =>
    rounds.map((round) => traffic[key].at(round) || 0)));
  const top = ceiling(most);
  const x = (at) => LEFT + (width - LEFT - RIGHT) * Math.max(0, 1 - (end - at) / span);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const grid = [0, top / 2, top].map((value) => [
    shape('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    shape('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, rate(value)),
  ]);
  const times = Array.from({ length: ticks + 1 }, (_, tick) => {
    const ago = (span * (ticks - tick)) / ticks;
    const anchor = ago === 0 ? 'end' : tick === 0 ? 'start' : 'middle';
    const label = ago === 0 ? 'now' : ago < 60_000 ? `−${ago / 1000} s` : `−${ago / 60_000} min`;
    return shape('text', { class: 'tick', x: x(end - ago), y: HEIGHT - 6, 'text-anchor': anchor }, label);
  });
  const paths = LINES.map(({ key }) =>
    shape('path', { class: `line ${key}`, d: path(rounds, feed, traffic[key], x, y) }));
  fill(svg, grid, times, paths);
}

/// Returns the path of a series. A missing sample makes a gap.
function path(rounds, feed, series, x, y) {
  let [drawn, pen] = ['', 'M'];
  for (const round of rounds) {
    const value = series.at(round);
    if (Number.isNaN(value)) {
      pen = 'M';
      continue;
    }
    drawn += `${pen}${x(feed.time(round)).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  }
  return drawn;
}

function ceiling(most) {
  if (most <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((step) => step * size).find((step) => step >= most);
}

function table(rows, feed, traffic) {
  fill(rows, feed.rounds().slice(-ROWS).reverse().map((round) => element('tr', {},
    element('th', { scope: 'row' }, clock(feed.time(round))),
    LINES.map(({ key }) => element('td', { class: 'number' }, rate(traffic[key].at(round)))))));
}

/// Draws a small line without axes, for a table cell.
export function spark(svg, feed, series) {
  const [width, height] = [96, 22];
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const rounds = feed.rounds().slice(-48);
  const most = Math.max(1e-9, ...rounds.map((round) => series.at(round) || 0));
  const x = (at) => width - 1 - ((feed.time(feed.round) - at) / 96_000) * (width - 2);
  const y = (value) => height - 2 - (value / most) * (height - 4);
  fill(svg, shape('path', { class: 'line refused', d: path(rounds, feed, series, x, y) }));
}
