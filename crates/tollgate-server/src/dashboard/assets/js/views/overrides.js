// Overrides of the policy: setting and removing them.

import { request } from '../api.js';
import { announce, element, field, fill, notice } from '../dom.js';
import { end, ends, sheddingName, what, describeTarget } from '../override.js';
import { Table } from '../table.js';

/// Sources whose values are in the policy, not in a request.
const POLICY_SOURCES = new Set(['constant']);
/// The effects that overrides of rules and load shedding can have.
const MILD_EFFECTS = new Set(['unlimited', 'counted']);
/// The samples of the feed between two requests.
const REFRESH_ROUNDS = 3;

export function overrides({ refuse }) {
  const location = element('p', { class: 'words' });
  const errorBox = element('div');
  const outcome = element('div', { 'aria-live': 'polite' });
  const container = element('div');
  const attempt = async (where, work) => {
    try {
      await work();
      fill(errorBox);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(where, notice('bad', problem.message));
    }
  };
  const refresh = () => attempt(errorBox, async () => {
    const { overrides: all, location: where, failure, pending } = await request('v1/overrides');
    table.set(all.map((one) => ({ ...one, id: JSON.stringify([one.limit, one.subject, one.group, one.everybody, one.rule, one.shedding]) })));
    const outcome = where === 'store' ? 'Overrides are kept in the store and apply on every node.' : 'Overrides are kept in this process: other nodes do not have them, and they are lost when the process ends.';
    const local = pending === 0 ? '' : ` ${pending === 1 ? '1 change applies' : `${pending} changes apply`} only on this node until the store answers.`;
    location.textContent = failure ? `${outcome}${local} The last attempt to read the overrides from the store failed: ${failure}.` : `${outcome}${local}`;
  });
  const change = async (work, text) => {
    fill(outcome);
    await attempt(outcome, async () => {
      const { pending } = await work();
      const result = pending ? `${text} The change applies only on this node, because the store does not answer. It is sent to the store when the store answers.` : text;
      fill(outcome, notice('good', result));
      announce(result);
    });
    await refresh();
  };
  const removeOverride = (row) => change(() => request(`v1/overrides?${query(row)}`, { method: 'DELETE' }), `Removed: ${describeTarget(row)}.`);
  const table = listed(removeOverride);
  attempt(errorBox, async () => {
    const form = new Form(await request('v1/policy'), (body) =>
      change(() => request('v1/overrides', { method: 'PUT', body }), 'The override is in force.'));
    form.prefill();
    fill(container, form.node);
  });
  refresh();
  let rounds = 0;
  const update = () => {
    rounds += 1;
    if (rounds % REFRESH_ROUNDS === 0) refresh();
  };
  const node = element('div', {},
    element('h1', {}, 'Overrides'),
    element('section', { class: 'card', 'aria-label': 'Set an override' },
      element('p', { class: 'words' }, 'Enter a value as it appears in a request, or the hash that the dashboard shows for it. To select all addresses of a network, enter it in CIDR notation, such as 192.0.2.0/24.'),
      container, outcome),
    element('section', { class: 'card', 'aria-label': 'In force' }, location, errorBox, table.node));
  return { node, update };
}

/// The form of an override: target, effect, duration and reason.
class Form {
  constructor({ subjects, limits, rules }, send) {
    this.subjects = subjects.filter(({ source }) => !POLICY_SOURCES.has(source));
    this.limits = limits;
    this.limit = select([['', 'every limit'], ...limits.map(({ name }) => [name, name])]);
    this.targetKind = select([['group', 'all subjects with this value'], ['subject', 'the one subject with exactly these values'], ['everybody', 'all subjects (kill switch)'], ['rule', 'a rule (kill switch)'], ['shedding', 'load shedding (kill switch)']]);
    this.effect = select([['blocked', 'blocked'], ['unlimited', 'unlimited'], ['counted', 'counted, never refused'], ['quota', 'another quota']]);
    this.rule = select(rules.map(({ name }) => [name, name]));
    this.shedding = select(['all', 'fleet', 'worker'].map((part) => [part, sheddingName(part)]));
    this.quota = element('input', { type: 'number', min: 1, step: 1, inputmode: 'numeric' });
    this.lasts = element('input', { type: 'text', required: true, value: '1h', pattern: '[1-9][0-9]{0,7}[smhd]|never', autocomplete: 'off' });
    this.reason = element('input', { type: 'text', required: true, maxlength: 500, autocomplete: 'off' });
    this.values = new Map();
    this.whose = element('div', { class: 'row' });
    this.amount = element('div', { class: 'row' });
    this.limit.addEventListener('change', () => this.drawWhose());
    this.targetKind.addEventListener('change', () => this.drawWhose());
    this.effect.addEventListener('change', () => this.drawAmount());
    this.node = element('form', { onsubmit: (event) => { event.preventDefault(); send(this.body()); } },
      element('div', { class: 'row' }, field('Limit', this.limit), field('Applies to', this.targetKind)),
      this.whose,
      element('div', { class: 'row' }, field('Effect', this.effect), this.amount,
        field('Duration', this.lasts, 'for example 90s, 15m, 12h or 7d; “never” means until it is removed'),
        field('Reason', this.reason, 'shown to administrators, never to clients'),
        element('button', { type: 'submit' }, 'Set')));
    this.drawWhose();
    this.drawAmount();
  }

  /// Draws a field for each value that the limit counts by, or that any limit does.
  drawWhose() {
    const limit = this.limits.find(({ name }) => name === this.limit.value);
    const counts = new Set(limit ? limit.per : this.limits.flatMap(({ per }) => per));
    const written = new Map([...this.values].map(([name, input]) => [name, input.value]));
    this.values = new Map(this.subjects.filter(({ name }) => counts.has(name)).map(({ name, secret }) => {
      const input = element('input', { type: secret ? 'password' : 'text', autocomplete: 'off', spellcheck: 'false' });
      input.value = written.get(name) ?? '';
      return [name, input];
    }));
    const targetKind = this.targetKind.value;
    const switches = { everybody: () => null, rule: () => field('Rule', this.rule), shedding: () => field('Which load shedding', this.shedding) };
    const draw = switches[targetKind] ?? (() => [...this.values].map(([name, input]) => field(name, input)));
    fill(this.whose, draw());
    // An override of a rule or of load shedding has no limit, no quota, and cannot block.
    const isOfLimits = targetKind !== 'rule' && targetKind !== 'shedding';
    this.limit.disabled = !isOfLimits;
    for (const option of this.effect.options) option.disabled = !isOfLimits && !MILD_EFFECTS.has(option.value);
    if (this.effect.selectedOptions[0]?.disabled) this.effect.value = 'unlimited';
    this.drawAmount();
  }

  drawAmount() {
    const isQuota = this.effect.value === 'quota';
    this.quota.required = isQuota;
    fill(this.amount, isQuota && field('Quota', this.quota, 'units per window; select one limit above'));
  }

  /// Fills in the target of the address: `#/overrides?limit=few&user=mallory`.
  prefill() {
    const query = new URLSearchParams(location.hash.split('?')[1] ?? '');
    if (this.limits.some(({ name }) => name === query.get('limit'))) this.limit.value = query.get('limit');
    this.drawWhose();
    for (const [name, input] of this.values) input.value = query.get(name) ?? '';
    const given = [...this.values.values()].filter(({ value }) => value);
    if (given.length > 1) this.targetKind.value = 'subject';
  }

  body() {
    const values = {};
    for (const [name, input] of this.values) {
      if (input.value.trim()) values[name] = input.value.trim();
    }
    const effect = this.effect.value === 'quota' ? { quota: Number(this.quota.value) } : { [this.effect.value]: true };
    const limit = this.limit.value && !this.limit.disabled ? { limit: this.limit.value } : {};
    const switches = { everybody: true, rule: this.rule.value, shedding: this.shedding.value };
    const describeTarget = { [this.targetKind.value]: switches[this.targetKind.value] ?? values };
    return { ...limit, ...describeTarget, ...effect, expires_in: this.lasts.value.trim(), reason: this.reason.value };
  }
}

function select(options) {
  return element('select', {}, options.map(([value, text]) => element('option', { value }, text)));
}

function listed(removeOverride) {
  return new Table({
    caption: 'Overrides in force',
    search: 'Search overrides',
    key: (row) => row.id,
    sort: { column: 'Ends', down: false },
    empty: 'No overrides: the policy applies to all subjects.',
    columns: [
      { label: 'Applies to', text: describeTarget, value: describeTarget },
      { label: 'Limit', text: (row) => row.limit ?? (row.rule || row.shedding ? '–' : 'every limit'), value: (row) => row.limit ?? '' },
      { label: 'Effect', text: what },
      { label: 'Ends', text: ends, value: end },
      { label: 'Reason', text: (row) => row.reason },
      { label: 'Remove', draw: (cell, row) => button(cell, row, removeOverride) },
    ],
  });
}

function button(cell, row, removeOverride) {
  if (cell.firstChild) return;
  cell.append(element('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${describeTarget(row)}`, onclick: () => removeOverride(row) }, 'Remove'));
}

/// Returns the query that removes an override. A missing value is a name without `=`.
function query({ limit, subject, group, everybody, rule, shedding }) {
  const part = (name, value) => (value === null ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  const kind = subject ? 'subject' : 'group';
  if (rule) return part('rule', rule);
  if (shedding) return part('shedding', shedding);
  const parts = everybody ? ['everybody=true']
    : Object.entries(subject ?? group).map(([name, value]) => part(`${kind}[${name}]`, value));
  if (limit !== undefined) parts.unshift(part('limit', limit));
  return parts.join('&');
}
