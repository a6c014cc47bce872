// The current policy, and reloading its file.

import { ask } from '../api.js';
import { announce, element, fill, notice } from '../dom.js';
import { count, many, moment } from '../format.js';
import { Table } from '../table.js';

export function policy({ refuse, feed }) {
  const facts = element('dl', { class: 'facts wide' });
  const refused = element('div');
  const told = element('div', { 'aria-live': 'polite' });
  const button = element('button', { type: 'button', onclick: () => reload() }, 'Reload the file');
  const rules = rulesTable();
  const node = element('div', {},
    element('h1', {}, 'Policy'),
    element('section', { class: 'card', 'aria-label': 'Current policy' }, facts, refused, element('p', {}, button), told),
    element('section', { class: 'card' }, element('h2', {}, 'Rules'), rules.node));
  const load = async () => {
    const meant = await ask('v1/policy');
    rules.set(meant.rules.map((rule, place) => ({ ...rule, place: place + 1 })));
    shape = meant;
    describe();
  };
  let shape = null;
  let seen = null;
  const describe = () => {
    const { status } = feed;
    if (!shape || !status) return;
    const { reloads } = status;
    const pairs = [
      ['Version', status.policy],
      ['Contains', `${many(shape.limits.length, 'limit')}, ${many(shape.rules.length, 'rule')}, ${many(shape.subjects.length, 'kind')} of subjects`],
      ['Rules', shape.rules_apply === 'all_matches' ? 'all matching rules apply' : 'the first matching rule applies'],
      ['In force since', reloads.last_applied_at ? moment(reloads.last_applied_at) : 'the start'],
      ['Reloads', `${count(reloads.applied)} applied, ${count(reloads.rejected)} rejected`,
        'Reloads of the policy file since the node started.'],
    ];
    const text = JSON.stringify([pairs, reloads.rejection]);
    if (text === seen) return;
    seen = text;
    fill(facts, pairs.map(([word, value, hint]) => element('div', { title: hint }, element('dt', {}, word), element('dd', {}, value))));
    fill(refused, reloads.rejection && notice('bad',
      element('p', {}, `The file was rejected at ${moment(reloads.rejection.at)}, and the policy before it is in force:`),
      element('pre', {}, reloads.rejection.reason)));
  };
  const attempt = async (work) => {
    try {
      await work();
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(told, notice('bad', element('p', {}, problem.title ?? 'No response'), element('pre', {}, problem.message)));
    }
  };
  const reload = () => attempt(async () => {
    button.disabled = true;
    try {
      const { replaced, policy: version } = await ask('v1/policy/reload', { method: 'POST' });
      const text = replaced ? `Version ${version} is in force now.` : `The file has not changed: version ${version}.`;
      fill(told, notice('good', text));
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
    describe();
  };
  return { node, update };
}

/// Describes the charge of a request on a limit. The response may report its cost.
function charge({ name, cost, meter }) {
  if (!meter) return cost === 1 ? name : `${name} × ${count(cost)}`;
  const read = {
    header: () => `the response's ${meter.name}`,
    json: () => `${meter.name} of the response`,
    size: () => `each ${many(meter.each, 'byte')} of the response`,
    time: () => `each ${count(meter.each)} ms that it takes`,
  };
  return `${name} by ${read[meter.from]?.() ?? meter.from} (${count(cost)} reserved)`;
}

function mode({ mode: said, switch: override }) {
  if (!override) return said;
  return override.unlimited ? 'switched off' : 'switched: only counts';
}

function rulesTable() {
  return new Table({
    caption: 'Rules',
    search: 'Search rules',
    key: (row) => row.name,
    empty: 'The policy has no rules.',
    columns: [
      { label: 'Rule', text: (row) => row.name, value: (row) => row.name },
      { label: 'Order', hint: 'The position of the rule: rules are evaluated in this order.', number: true, text: (row) => count(row.place), value: (row) => row.place },
      { label: 'Charges', text: (row) => row.limits.map(charge).join(', ') || 'nothing' },
      { label: 'Mode', text: mode },
      { label: 'When', text: (row) => row.charge.replace('_', ' ') },
      { label: 'Fallback', text: (row) => row.on_failure },
    ],
  });
}
