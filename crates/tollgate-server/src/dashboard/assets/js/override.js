// Overrides in words.

import { count, many, moment } from './format.js';

/// Describes the target of an override.
export function describeTarget({ subject, group, everybody, rule, shedding }) {
  if (everybody) return 'all subjects';
  if (rule) return `rule ${rule}`;
  if (shedding) return sheddingName(shedding);
  const pairs = Object.entries(subject ?? group).map(([name, value]) => `${name}=${value ?? '(none)'}`);
  if (!pairs.length) return 'all clients (the limit has one counter)';
  return group ? `all subjects with ${pairs.join(', ')}` : pairs.join(', ');
}

/// Describes a part of load shedding.
export function sheddingName(part) {
  return { fleet: 'load shedding by the load of all nodes (fleet)', worker: 'load shedding by each node’s own load (worker)' }[part] ?? 'all load shedding';
}

/// Describes the effect of an override.
export function what({ quota, burst, unlimited, blocked, counted }) {
  if (counted) return 'counted, never refused';
  if (blocked) return 'blocked';
  if (unlimited) return 'unlimited';
  return `${many(quota, 'unit')}${burst === undefined ? '' : `, burst ${count(burst)}`}`;
}

/// Describes the end of an override.
export function ends({ expires }) {
  return expires === null ? 'never' : moment(expires);
}

/// The end of an override as a number to sort by.
export function end({ expires }) {
  return expires ?? Number.MAX_SAFE_INTEGER;
}

/// Describes the end of an override within a sentence.
export function until({ expires }) {
  return expires === null ? 'until it is removed' : `until ${moment(expires)}`;
}
