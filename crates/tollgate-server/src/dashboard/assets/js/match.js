// Rules in words: what they match, and what they charge.

import { element } from './dom.js';
import { allows, count, counted, many } from './format.js';

/// Returns the conditions of a rule as texts. All of them must be met.
export function conditions({ methods, paths, hosts, networks, headers, query, cookies, has, lacks, when, any, not }) {
  return [
    methods?.length && `method ${methods.join(' or ')}`,
    paths?.length && `path ${paths.join(' or ')}`,
    hosts?.length && `host ${hosts.join(' or ')}`,
    networks?.length && `network ${networks.join(' or ')}`,
    ...values('header', headers),
    ...values('query parameter', query),
    ...values('cookie', cookies),
    has?.length && `has ${has.join(' and ')}`,
    lacks?.length && `has no ${lacks.join(' and no ')}`,
    when && `when ${when}`,
    any?.length && `any of (${any.map(together).join(') or (')})`,
    ...(not ?? []).map((excluded) => `not (${together(excluded)})`),
  ].filter(Boolean);
}

function values(kind, wanted) {
  return (wanted ?? []).map(({ name, values: allowed }) => (allowed?.length ? `${kind} ${name}: ${allowed.join(' or ')}` : `${kind} ${name}`));
}

function together(conditionsOfOne) {
  return conditions(conditionsOfOne).join(' and ');
}

/// Describes what a rule matches.
export function matched(rule) {
  return conditions(rule.match ?? {}).join('; ') || 'every request';
}

/// Describes the charge of a request on a limit. The response may report its cost.
export function charge({ name, cost, meter }) {
  return `${name}${cause({ cost, meter })}`;
}

function cause({ cost, meter }) {
  if (!meter) return cost === 1 ? '' : ` × ${count(cost)}`;
  const read = {
    header: () => `the number in the response header field ${meter.name}`,
    json: () => `the number ${meter.name} in the response body`,
    size: () => `1 unit for each started block of ${many(meter.each, 'byte')} of the response body`,
    time: () => `1 unit for each started ${count(meter.each)} ms until the response ends`,
  };
  return ` (cost: ${read[meter.from]?.() ?? meter.from}; ${many(cost, 'unit')} reserved until the response ends)`;
}

/// Returns an element for a limit that a rule charges: a link to it, and what it allows.
export function charged(used, limits) {
  const limit = limits.find(({ name }) => name === used.name);
  return element('div', {}, element('a', { href: `#/limits/${encodeURIComponent(used.name)}` }, used.name), cause(used),
    limit && element('span', { class: 'dim' }, ` ${allows(limit)}, ${counted(limit)}`));
}
