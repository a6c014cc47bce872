// What is wrong with the node or its store, shown above every view.

import { element, fill } from './dom.js';
import { moment } from './format.js';
import { shardName } from './feed.js';

/// Returns the alerts of a sample, the worst first. Each has a `kind`, a `title` and a `text`.
export function alerts({ status, problem }) {
  if (problem) return [{ kind: 'bad', title: 'No data', text: problem.message }];
  const all = [];
  for (const shard of status?.shards ?? []) {
    const errors = shard.servers.map((server) => server.last_error).filter(Boolean);
    const reason = errors.length ? ` Last error: ${errors[0]}` : '';
    if (!shard.primary) {
      all.push({ kind: 'bad', title: `Shard ${shardName(shard)} is down`,
        text: `No primary responds. The fallback of each rule decides for the subjects of this shard.${reason}` });
    }
  }
  for (const server of status?.servers ?? []) {
    if (server.connected) continue;
    all.push({ kind: 'bad', title: `Memcached server ${shardName(server)} is down`,
      text: `No connection is open. The fallback of each rule decides for the subjects of this server.${server.last_error ? ` Last error: ${server.last_error}` : ''}` });
  }
  for (const shard of status?.shards ?? []) {
    const open = shard.primary ? shard.servers.filter((server) => server.circuit_breaker !== 'closed') : [];
    for (const { address, circuit_breaker: state } of open) {
      all.push({ kind: 'warn', title: `Shard ${shardName(shard)} is degraded`, text: `The circuit breaker of ${address} is ${state}.` });
    }
  }
  const rejection = status?.reloads?.rejection;
  if (rejection) {
    all.push({ kind: 'warn', title: 'The policy file was rejected',
      text: `Rejected at ${moment(rejection.at)}. The previous policy stays in force.`, link: '#/policy' });
  }
  return all;
}

/// Shows `all` in `container`, if they have changed.
export function warn(container, all) {
  const seen = JSON.stringify(all);
  if (container.dataset.seen === seen) return;
  container.dataset.seen = seen;
  container.hidden = !all.length;
  fill(container, all.map(({ kind, title, text, link }) => element('p', { class: `alert ${kind}` },
    element('strong', {}, title), element('span', {}, text, link && [' ', element('a', { href: link }, 'Details')]))));
}
