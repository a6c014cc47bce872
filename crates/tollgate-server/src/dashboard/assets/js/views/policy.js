// The current policy, and reloading its file.

import { request } from '../api.js';
import { announce, element, fill, notice } from '../dom.js';
import { count, many, moment } from '../format.js';
import { charge, charged, conditions, matched } from '../match.js';
import { Table } from '../table.js';

export function policy({ refuse, feed }) {
  const facts = element('dl', { class: 'facts wide' });
  const refused = element('div');
  const result = element('div', { 'aria-live': 'polite' });
  const button = element('button', { type: 'button', onclick: () => reload() }, 'Reload the file');
  const rules = rulesTable();
  const node = element('div', {},
    element('h1', {}, 'Policy'),
    element('section', { class: 'card', 'aria-label': 'Current policy' }, facts, refused, element('p', {}, button), result),
    element('section', { class: 'card' }, element('h2', {}, 'Rules'), rules.node));
  let shape = null;
  const load = async () => {
    shape = await request('v1/policy');
    list();
    describe();
  };
  const list = () => shape && rules.set(shape.rules.map((rule, index) => ({
    ...rule, place: index + 1, known: shape.limits, refusals: shadowed(rule, feed),
  })));
  let seen = null;
  const describe = () => {
    const { status } = feed;
    if (!shape || !status) return;
    const { reloads } = status;
    const pairs = [
      ['Version', status.policy],
      ['Contains', `${many(shape.limits.length, 'limit')}, ${many(shape.rules.length, 'rule')}, ${many(shape.subjects.length, 'kind')} of subjects`],
      ['Rules', shape.rules_apply === 'all_matches' ? 'all matching rules apply' : 'the first matching rule applies'],
      ['In force since', reloads.last_applied_at ? moment(reloads.last_applied_at) : 'the start of the node'],
      ['Reloads', `${count(reloads.applied)} applied, ${count(reloads.rejected)} rejected`,
        'Reloads of the policy file since the node started.'],
    ];
    const text = JSON.stringify([pairs, reloads.rejection]);
    if (text === seen) return;
    seen = text;
    fill(facts, pairs.map(([term, value, hint]) => element('div', { title: hint }, element('dt', {}, term), element('dd', {}, value))));
    fill(refused, reloads.rejection && notice('bad',
      element('p', {}, `The file was rejected at ${moment(reloads.rejection.at)}, and the previous policy stays in force:`),
      element('pre', {}, reloads.rejection.reason)));
  };
  const attempt = async (work) => {
    try {
      await work();
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(result, notice('bad', element('p', {}, problem.title ?? 'No response'), element('pre', {}, problem.message)));
    }
  };
  const reload = () => attempt(async () => {
    button.disabled = true;
    try {
      const { replaced, policy: version } = await request('v1/policy/reload', { method: 'POST' });
      const text = replaced ? `Version ${version} is in force now.` : `The file has not changed: version ${version}.`;
      fill(result, notice('good', text));
      announce(text);
      await load();
    } finally {
      button.disabled = false;
      button.focus();
    }
  });
  attempt(load);
  let version = null;
  const update = ({ status }) => {
    const now = JSON.stringify([status.policy, status.switches]);
    if (version && version !== now) attempt(load);
    version = now;
    list();
    describe();
  };
  return { node, update };
}

/// Returns what the limits of a shadow rule would have refused since the start, or `null` for a rule
/// that refuses.
function shadowed(rule, feed) {
  const onlyCounts = rule.mode === 'shadow' || rule.switch?.counted;
  if (!onlyCounts) return null;
  return rule.limits.map(({ name }) => {
    const { wouldAdmit = 0, wouldRefuse = 0 } = feed.limits.get(name)?.counts ?? {};
    return { name, wouldRefuse, all: wouldAdmit + wouldRefuse };
  });
}

function wouldRefuse({ refusals }) {
  if (!refusals) return '–';
  const describeRefusals = ({ wouldRefuse: refused, all }) => `${count(refused)} of ${count(all)}`;
  if (refusals.length === 1) return describeRefusals(refusals[0]);
  return refusals.map((one) => `${one.name}: ${describeRefusals(one)}`).join(', ');
}

function mode({ mode: ruleMode, switch: override }) {
  if (!override) return ruleMode;
  return override.unlimited ? 'switched off' : 'switched: counts, never refuses';
}

function rulesTable() {
  return new Table({
    caption: 'Rules',
    search: 'Search rules',
    key: (row) => row.name,
    empty: 'The policy has no rules.',
    columns: [
      { label: 'Rule', text: (row) => row.name, value: (row) => row.name },
      { label: 'Order', hint: 'The position of the rule: rules are evaluated in this order.', text: (row) => count(row.place), value: (row) => row.place },
      { label: 'Matches', wrap: true, hint: 'A request must meet all of these conditions.', text: matched, draw: (cell, row) => drawn(cell, matched(row), conditions(row.match ?? {}).map((one) => element('div', {}, one)), 'every request') },
      { label: 'Charges', wrap: true, hint: 'The limits that a matching request is charged on.', text: (row) => row.limits.map(charge).join(', '), draw: (cell, row) => drawn(cell, JSON.stringify([row.limits, row.known]), row.limits.map((used) => charged(used, row.known)), 'nothing') },
      { label: 'Mode', hint: 'enforce: the rule refuses requests. shadow: it counts requests and never refuses. An override can switch a rule off, or make it count and never refuse.', text: mode, draw: (cell, row) => pill(cell, row) },
      { label: 'Would refuse', wrap: true, hint: 'For a rule in shadow mode: how many requests each of its limits would have refused, of those that it evaluated since the node started.', text: wouldRefuse, value: (row) => (row.refusals ?? []).reduce((all, one) => all + one.wouldRefuse, 0) },
      { label: 'Charged', hint: 'on arrival: a request is charged before it is forwarded. on completion: it is charged when its response is known.', text: (row) => row.charge.replace('_', ' ') },
      { label: 'Fallback', hint: 'What decides while the store does not answer. local: this node’s share of each limit. allow: every request is admitted. deny: every request is refused.', text: (row) => row.on_failure },
    ],
  });
}

/// Draws the lines of a cell, if they have changed.
function drawn(cell, seen, lines, none) {
  if (cell.dataset.seen === seen) return;
  cell.dataset.seen = seen;
  fill(cell, lines.length ? lines : none);
}

function pill(cell, row) {
  const kind = row.switch ? 'bad' : row.mode === 'shadow' ? 'warn' : 'good';
  drawn(cell, mode(row), [element('span', { class: `pill ${kind}` }, mode(row))], '');
}
