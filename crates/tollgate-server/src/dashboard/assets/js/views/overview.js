// The status of the node: traffic, listeners, shards.

import { latencyChart, trafficChart } from '../chart.js';
import { element, fill, setText } from '../dom.js';
import { clock, count, percent, rate, duration } from '../format.js';
import { shardName } from '../feed.js';
import { Table } from '../table.js';

/// The number of limits shown here. All limits are in their own view.
const BUSIEST = 5;
/// The tooltips of the store's counters, since the node started.
const COUNTS = {
  deny_cache_hits: 'Calls that the deny cache refused without a request to the store.',
  fallback_decisions: 'Calls that the local fallback answered because the store did not.',
  unanswered: 'Calls that neither the store nor the local fallback answered.',
  deadline_misses: 'Calls that were aborted at the deadline of the decision.',
  refund_failures: 'Charges that one shard had made when another shard refused the request or failed, and that could not be refunded. In a rollout, also refunds that may not have reached both stores.',
  discarded: 'Calls that found invalid state in the store. Invalid state counts as empty.',
  percent: 'In a rollout, the percentage of clients that use the new store. With a shadow store, the percentage of clients whose requests are also sent to it.',
  transferred: 'Counters that were transferred to the new store.',
  transfer_failures: 'Transfers of counters that failed.',
  compared: 'Calls that were compared with the shadow store.',
  skipped: 'Calls that were not sent to the shadow store because its queue was full.',
  uncomparable: 'Refunds that could not be compared with the shadow store.',
};

/// Labels that say more than the names of the counters.
const LABELS = {
  deny_cache_hits: 'refused by the deny cache',
  unanswered: 'calls without an answer',
  discarded: 'invalid stored state',
  percent: 'percent of clients',
};

export function overview() {
  const chart = trafficChart('All requests');
  const latency = latencyChart('Decision latency');
  const tiles = [
    ['Admitted / s', 'Requests that were admitted, per second.'],
    ['Refused / s', 'Requests that were refused, per second.'],
    ['Refusal rate', 'Refused requests as a percentage of all requests.'],
    ['Degraded / s', 'Decisions of the fallback because the store did not answer, per second.'],
    ['p99 latency', '99 % of the decisions of the slowest listener take at most this long.'],
  ].map(tile);
  const busiest = busiestTable();
  const listeners = listenersTable();
  const store = storeCard();
  const node = element('div', {},
    element('h1', {}, 'Overview'),
    element('div', { class: 'tiles' }, tiles.map(({ node: one }) => one)),
    element('section', { class: 'card', 'aria-label': 'All requests' }, chart.node),
    element('section', { class: 'card', 'aria-label': 'Decision latency' }, latency.node),
    element('div', { class: 'pair' },
      section('Busiest limits', busiest.node, element('p', { class: 'more' }, element('a', { href: '#/limits' }, 'All limits'))),
      section('Listeners', listeners.node)),
    store.node);
  const update = (feed) => {
    const now = (series) => series.at(feed.round);
    const [admitted, refused, degraded] = ['admitted', 'refused', 'degraded'].map((key) => feed.now(feed.all, key));
    const slowest = [...feed.serving.values()].map((listener) => listener.duration.p99).filter((p99) => p99 !== undefined);
    const summary = [rate(admitted), rate(refused), percent(refused, admitted + refused), rate(degraded),
      duration(slowest.length ? Math.max(...slowest) : null)];
    tiles.forEach(({ figure }, index) => setText(figure, summary[index]));
    tiles[3].node.classList.toggle('warn', degraded > 0);
    chart.draw(feed, feed.all);
    latency.draw(feed, feed.latency);
    busiest.set(busiestOf(feed));
    listeners.set([...feed.serving.values()].map((listener) => ({ ...listener, now: now(listener.decisions) })));
    store.update(feed);
  };
  return { node, update };
}

function section(title, ...children) {
  return element('section', { class: 'card' }, element('h2', {}, title), ...children);
}

function tile([label, hint]) {
  const figure = element('dd', {}, '–');
  return { node: element('dl', { class: 'tile', title: hint }, element('dt', {}, label), figure), figure };
}

function busiestTable() {
  return new Table({
    caption: 'The busiest limits',
    key: (row) => row.name,
    empty: 'No decisions yet.',
    columns: [
      { label: 'Limit', text: (row) => row.name, link: (row) => `#/limits/${encodeURIComponent(row.name)}` },
      { label: 'Admitted / s', hint: 'Requests that this limit admitted, per second.', number: true, text: (row) => rate(row.admitted) },
      { label: 'Refused / s', hint: 'Requests that this limit refused, per second.', number: true, text: (row) => rate(row.refused) },
      { label: 'Refused in total', hint: 'Requests that this limit refused since the node started.', number: true, text: (row) => count(row.counts.refused) },
    ],
  });
}

function busiestOf(feed) {
  const rows = [...feed.limits.values()].map(({ name, counts, traffic }) => ({
    name, counts, admitted: feed.now(traffic, 'admitted'), refused: feed.now(traffic, 'refused'),
  }));
  const busy = (row) => (row.admitted || 0) + (row.refused || 0);
  const all = (row) => row.counts.admitted + row.counts.refused;
  return rows.sort((one, other) => busy(other) - busy(one) || all(other) - all(one)).slice(0, BUSIEST);
}

function listenersTable() {
  return new Table({
    caption: 'Listeners',
    key: (row) => row.name,
    empty: 'No listener is open.',
    columns: [
      { label: 'Listener', text: (row) => row.name },
      { label: 'Decisions / s', hint: 'Decisions through this listener, per second.', number: true, text: (row) => (row.duration.buckets ? rate(row.now) : '–') },
      { label: 'p50', hint: 'Half of the decisions through this listener take at most this long.', number: true, text: (row) => duration(row.duration.p50) },
      { label: 'p99', hint: '99 % of the decisions through this listener take at most this long.', number: true, text: (row) => duration(row.duration.p99) },
      { label: 'Connections', hint: 'Open connections of clients.', number: true, text: (row) => count(row.connections ?? 0) },
    ],
  });
}

/// The store: shards, their servers and circuit breakers, rebalances, and recent changes.
function storeCard() {
  const summary = element('p', { class: 'words' });
  const facts = element('dl', { class: 'facts' });
  const shards = new Table({
    caption: 'The shards',
    key: shardName,
    empty: 'No shards.',
    columns: [
      { label: 'Shard', text: shardName },
      { label: 'Health', draw: health, text: (row) => state(row).text },
      { label: 'Primary', text: (row) => row.primary ?? 'none' },
      { label: 'Scripting', hint: 'How the servers of the shard run decisions: by the Tollgate module, as a Redis function, or as a script.', text: (row) => row.scripting },
      { label: 'p50', hint: 'Half of the calls take at most this long.', number: true, text: (row) => duration(row.duration?.p50) },
      { label: 'p99', hint: '99 % of the calls take at most this long.', number: true, text: (row) => duration(row.duration?.p99) },
      { label: 'Circuit breakers', hint: 'One for each server. closed: calls are sent. open: no calls are sent, because the server does not answer. half_open: calls wait for a new connection.', text: (row) => row.servers.map((server) => server.circuit_breaker).join(', ') },
      { label: 'Breaker opened', hint: 'How often circuit breakers of this shard opened since the node started.', number: true, text: (row) => count(sum(row.servers, 'circuit_breaker_opened')) },
      { label: 'Unknown outcomes', hint: 'Calls that timed out after they were sent: they may or may not have been charged.', number: true, text: (row) => count(sum(row.servers, 'unknown_outcomes')) },
      { label: 'Clock offset', hint: 'The difference between the clocks of the primary and of this node.', number: true, text: (row) => (row.clock_offset_ms === null ? '–' : `${row.clock_offset_ms} ms`) },
    ],
  });
  const servers = serversTable();
  const events = element('ol', { class: 'events' });
  const history = section('Events since this page was opened', events);
  const node = element('div', {}, section('Store', summary, facts, shards.node, servers.node), history);
  const update = ({ status, shards: duration, events: all }) => {
    // The calls of a shard that is down fail at once: their durations say nothing.
    const isUp = (row) => row.primary || row.connected;
    const timed = (rows) => rows.map((row) => ({ ...row, duration: isUp(row) ? duration.get(shardName(row)) : null }));
    setText(summary, describeStore(status));
    const pairs = Object.entries(status.counts ?? {}).filter(([, value]) => typeof value === 'number');
    list(facts, pairs);
    shards.node.hidden = !status.shards.length;
    shards.set(timed(status.shards));
    servers.node.hidden = !status.servers?.length;
    servers.set(timed(status.servers ?? []));
    history.hidden = !all.length;
    if (events.childElementCount !== all.length || events.dataset.last !== String(all[0]?.at)) {
      events.dataset.last = String(all[0]?.at);
      fill(events, all.map(({ at, text }) => element('li', {}, element('time', {}, clock(at)), ' ', text)));
    }
  };
  return { node, update };
}

/// The memcached servers, with the ways in which they lost counters.
function serversTable() {
  return new Table({
    caption: 'The memcached servers',
    key: shardName,
    empty: 'No servers.',
    columns: [
      { label: 'Server', text: shardName },
      { label: 'Health', draw: (cell, row) => pill(cell, serverState(row)), text: (row) => serverState(row).text },
      { label: 'Connected', hint: 'Open connections, out of those that are configured.', number: true, text: (row) => `${count(row.connected)} of ${count(row.connections)}` },
      { label: 'p50', hint: 'Half of the calls take at most this long.', number: true, text: (row) => duration(row.duration?.p50) },
      { label: 'p99', hint: '99 % of the calls take at most this long.', number: true, text: (row) => duration(row.duration?.p99) },
      { label: 'Evicted', hint: 'Counters that memcached evicted before they expired.', number: true, text: (row) => count(row.evicted) },
      { label: 'Restarts', hint: 'Restarts of the server, which lost all counters.', number: true, text: (row) => count(row.restarts) },
      { label: 'Flushes', hint: 'flush_all commands, which removed all counters.', number: true, text: (row) => count(row.flushes) },
      { label: 'CAS conflicts', hint: 'Writes that were repeated because another node changed the counter first.', number: true, text: (row) => count(row.cas_conflicts) },
      { label: 'Failed after CAS conflicts', hint: 'Calls that failed because of repeated CAS conflicts.', number: true, text: (row) => count(row.contended) },
      { label: 'Last error', text: (row) => row.last_error ?? '–' },
    ],
  });
}

function serverState({ connected, connections }) {
  if (!connected) return { kind: 'bad', text: 'down' };
  return connected === connections ? { kind: 'good', text: 'up' } : { kind: 'warn', text: 'degraded' };
}

function list(facts, pairs) {
  const isNew = facts.childElementCount !== pairs.length;
  if (isNew) fill(facts, pairs.map(([name]) => element('div', { title: COUNTS[name] }, element('dt', {}, LABELS[name] ?? name.replaceAll('_', ' ')), element('dd'))));
  pairs.forEach(([, value], index) => setText(facts.children[index].lastChild, count(value)));
}

function describeStore({ store, map }) {
  const rebalance = map?.rebalance;
  const kinds = {
    memory: 'Counters are kept in the memory of this process.',
    redis: 'Counters are kept in Redis, in one or more shards.',
    memcached: 'Counters are kept in memcached.',
    rollout: 'A rollout moves traffic from one store to another.',
    shadow: 'A shadow store is compared with the store that decides.',
  };
  const phase = rebalance ? ` Rebalance from shard map ${rebalance.from} to shard map ${map.version}: phase ${rebalance.phase}, ${count(rebalance.transferred)} counters transferred.` : '';
  return (kinds[store] ?? store) + phase;
}

function sum(servers, name) {
  return servers.reduce((all, server) => all + server[name], 0);
}

function state(shard) {
  if (!shard.primary) return { kind: 'bad', text: 'down' };
  const isWhole = shard.servers.every((server) => server.circuit_breaker === 'closed');
  return isWhole ? { kind: 'good', text: 'up' } : { kind: 'warn', text: 'degraded' };
}

function health(cell, shard) {
  pill(cell, state(shard));
}

function pill(cell, { kind, text }) {
  if (!cell.firstChild) cell.append(element('span', {}));
  cell.firstChild.className = `pill ${kind}`;
  setText(cell.firstChild, text);
}
