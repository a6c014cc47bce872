// All limits, with their decisions.

import { request } from '../api.js';
import { spark } from '../chart.js';
import { element, fill, notice, shape } from '../dom.js';
import { allows, count, rate } from '../format.js';
import { Table } from '../table.js';

/// The span of the small charts.
const SPARK = 300_000;

export function limits({ refuse }) {
  let configured = [];
  let lastFeed = null;
  const errorBox = element('div');
  const traffic = (row) => lastFeed?.limits.get(row.name)?.traffic;
  const now = (row, key) => (traffic(row) ? lastFeed.now(traffic(row), key) : 0);
  const all = (row, name) => lastFeed?.limits.get(row.name)?.counts[name] ?? 0;
  const table = new Table({
    caption: 'Limits',
    search: 'Search limits',
    key: (row) => row.name,
    sort: { column: 'Refused / s', down: true },
    empty: 'The policy has no limits.',
    columns: [
      { label: 'Limit', text: (row) => row.name, value: (row) => row.name, link: (row) => `#/limits/${encodeURIComponent(row.name)}` },
      { label: 'Allows', text: allows },
      { label: 'Counted per', hint: 'The limit has one counter for each value, or combination of values.', text: (row) => row.per.join(', ') || 'all clients together' },
      { label: 'Admitted / s', hint: 'Requests that this limit admitted, per second.', number: true, text: (row) => rate(now(row, 'admitted')), value: (row) => now(row, 'admitted') },
      { label: 'Refused / s', hint: 'Requests that this limit refused, per second.', number: true, text: (row) => rate(now(row, 'refused')), value: (row) => now(row, 'refused') },
      { label: 'Refused (recent)', hint: 'Refusals per second over the last five minutes.', draw: (cell, row) => drawn(cell, lastFeed, traffic(row)) },
      { label: 'Would refuse', hint: 'Requests since the node started that this limit would have refused, but did not: the rule is in shadow mode, or the limit is not enforced for the subject.', number: true, text: (row) => (all(row, 'wouldAdmit') + all(row, 'wouldRefuse') ? count(all(row, 'wouldRefuse')) : '–'), value: (row) => all(row, 'wouldRefuse') },
      { label: 'Admitted in total', hint: 'Requests that this limit admitted since the node started.', number: true, text: (row) => count(all(row, 'admitted')), value: (row) => all(row, 'admitted') },
      { label: 'Refused in total', hint: 'Requests that this limit refused since the node started.', number: true, text: (row) => count(all(row, 'refused')), value: (row) => all(row, 'refused') },
    ],
  });
  const load = async () => {
    try {
      configured = (await request('v1/policy')).limits;
      fill(errorBox);
      table.set(configured);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(errorBox, notice('bad', problem.message));
    }
  };
  load();
  let version = null;
  const update = (feed) => {
    lastFeed = feed;
    if (version && version !== feed.status.policy) load();
    version = feed.status.policy;
    table.set(configured);
  };
  const node = element('div', {},
    element('h1', {}, 'Limits'), errorBox, element('section', { class: 'card', 'aria-label': 'Limits' }, table.node));
  return { node, update };
}

function drawn(cell, feed, traffic) {
  if (!cell.firstChild) cell.append(shape('svg', { class: 'spark', width: 96, height: 22, 'aria-hidden': 'true' }));
  if (!feed || !traffic) return;
  spark(cell.firstChild, feed.points(traffic, 'refused', SPARK), feed.time(feed.round), SPARK, 'refused');
}
