// Another word than the policy's for some subjects: setting it, and lifting it.

import { ask } from '../api.js';
import { announce, element, field, fill, notice } from '../dom.js';
import { moment } from '../format.js';
import { what, whom } from '../override.js';
import { Table } from '../table.js';

/// What stands in a policy, and not in a request.
const NOT_ASKED = new Set(['constant']);
/// What rules and shedding can be switched to.
const CALM = new Set(['unlimited', 'counted']);
/// Looks of the feed from one question to the next.
const PATIENCE = 3;

export function overrides({ refuse }) {
  const kept = element('p', { class: 'words' });
  const trouble = element('div');
  const told = element('div', { 'aria-live': 'polite' });
  const place = element('div');
  const attempt = async (where, work) => {
    try {
      await work();
      fill(trouble);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(where, notice('bad', problem.message));
    }
  };
  const look = () => attempt(trouble, async () => {
    const { overrides: all, location: where, failure } = await ask('v1/overrides');
    table.set(all.map((one) => ({ ...one, id: JSON.stringify([one.limit, one.subject, one.group, one.everybody, one.rule, one.shedding]) })));
    const told = where === 'store' ? 'Kept in the store: every node goes by them.' : 'Kept in this process: other nodes know nothing of them, and they end with it.';
    kept.textContent = failure ? `${told} They could not be read the last time: ${failure}.` : told;
  });
  const change = async (work, text) => {
    fill(told);
    await attempt(told, async () => {
      await work();
      fill(told, notice('good', text));
      announce(text);
    });
    await look();
  };
  const lift = (row) => change(() => ask(`v1/overrides?${query(row)}`, { method: 'DELETE' }), `Lifted: ${whom(row)}.`);
  const table = listed(lift);
  attempt(trouble, async () => {
    const form = new Form(await ask('v1/policy'), (body) =>
      change(() => ask('v1/overrides', { method: 'PUT', body }), 'It is in force.'));
    form.prefill();
    fill(place, form.node);
  });
  look();
  let rounds = 0;
  const update = () => {
    rounds += 1;
    if (rounds % PATIENCE === 0) look();
  };
  const node = element('div', {},
    element('h1', {}, 'Overrides'),
    element('section', { class: 'card', 'aria-label': 'Another word' },
      element('p', { class: 'words' }, 'A value as a request would hold it, or its hash as it is shown. All who have a value: of an address also a network.'),
      place, told),
    element('section', { class: 'card', 'aria-label': 'In force' }, kept, trouble, table.node));
  return { node, update };
}

/// What is said, of whom, for how long and why.
class Form {
  constructor({ subjects, limits, rules }, send) {
    this.subjects = subjects.filter(({ source }) => !NOT_ASKED.has(source));
    this.limits = limits;
    this.limit = select([['', 'every limit'], ...limits.map(({ name }) => [name, name])]);
    this.meant = select([['group', 'all who have this value'], ['subject', 'exactly these values'], ['everybody', 'everybody: a switch'], ['rule', 'a rule: a switch'], ['shedding', 'load shedding: a switch']]);
    this.effect = select([['blocked', 'blocked'], ['unlimited', 'unlimited'], ['counted', 'only counted'], ['quota', 'another quota']]);
    this.rule = select(rules.map(({ name }) => [name, name]));
    this.shedding = select([['all', 'all of it'], ['fleet', 'by the fleet'], ['worker', 'by the worker']]);
    this.quota = element('input', { type: 'number', min: 1, step: 1, inputmode: 'numeric' });
    this.lasts = element('input', { type: 'text', required: true, value: '1h', pattern: '[1-9][0-9]{0,7}[smhd]', autocomplete: 'off' });
    this.reason = element('input', { type: 'text', required: true, maxlength: 500, autocomplete: 'off' });
    this.values = new Map();
    this.whose = element('div', { class: 'row' });
    this.amount = element('div', { class: 'row' });
    this.limit.addEventListener('change', () => this.drawWhose());
    this.meant.addEventListener('change', () => this.drawWhose());
    this.effect.addEventListener('change', () => this.drawAmount());
    this.node = element('form', { onsubmit: (event) => { event.preventDefault(); send(this.body()); } },
      element('div', { class: 'row' }, field('Limit', this.limit), field('Meant are', this.meant)),
      this.whose,
      element('div', { class: 'row' }, field('They are given', this.effect), this.amount,
        field('For', this.lasts, 'such as 90s, 15m, 12h or 7d'),
        field('Reason', this.reason, 'clients never hear it'),
        element('button', { type: 'submit' }, 'Set')));
    this.drawWhose();
    this.drawAmount();
  }

  /// A field for each value by which the limit counts, or any does.
  drawWhose() {
    const limit = this.limits.find(({ name }) => name === this.limit.value);
    const counts = new Set(limit ? limit.per : this.limits.flatMap(({ per }) => per));
    const written = new Map([...this.values].map(([name, input]) => [name, input.value]));
    this.values = new Map(this.subjects.filter(({ name }) => counts.has(name)).map(({ name, secret }) => {
      const input = element('input', { type: secret ? 'password' : 'text', autocomplete: 'off', spellcheck: 'false' });
      input.value = written.get(name) ?? '';
      return [name, input];
    }));
    const meant = this.meant.value;
    const switches = { everybody: () => null, rule: () => field('Rule', this.rule), shedding: () => field('What', this.shedding) };
    const draw = switches[meant] ?? (() => [...this.values].map(([name, input]) => field(name, input)));
    fill(this.whose, draw());
    // A switch of a rule or of shedding is of no limit, blocks nobody and has no quota.
    const isOfLimits = meant !== 'rule' && meant !== 'shedding';
    this.limit.disabled = !isOfLimits;
    for (const option of this.effect.options) option.disabled = !isOfLimits && !CALM.has(option.value);
    if (this.effect.selectedOptions[0]?.disabled) this.effect.value = 'unlimited';
    this.drawAmount();
  }

  drawAmount() {
    const isQuota = this.effect.value === 'quota';
    this.quota.required = isQuota;
    fill(this.amount, isQuota && field('Quota', this.quota, 'units per window, of one limit'));
  }

  /// The address may say whom: `#/overrides?limit=few&user=mallory`.
  prefill() {
    const query = new URLSearchParams(location.hash.split('?')[1] ?? '');
    if (this.limits.some(({ name }) => name === query.get('limit'))) this.limit.value = query.get('limit');
    this.drawWhose();
    for (const [name, input] of this.values) input.value = query.get(name) ?? '';
    const given = [...this.values.values()].filter(({ value }) => value);
    if (given.length > 1) this.meant.value = 'subject';
  }

  body() {
    const values = {};
    for (const [name, input] of this.values) {
      if (input.value.trim()) values[name] = input.value.trim();
    }
    const effect = this.effect.value === 'quota' ? { quota: Number(this.quota.value) } : { [this.effect.value]: true };
    const limit = this.limit.value && !this.limit.disabled ? { limit: this.limit.value } : {};
    const switches = { everybody: true, rule: this.rule.value, shedding: this.shedding.value };
    const whom = { [this.meant.value]: switches[this.meant.value] ?? values };
    return { ...limit, ...whom, ...effect, expires_in: this.lasts.value.trim(), reason: this.reason.value };
  }
}

function select(options) {
  return element('select', {}, options.map(([value, text]) => element('option', { value }, text)));
}

function listed(lift) {
  return new Table({
    caption: 'Overrides in force',
    search: 'Search overrides',
    key: (row) => row.id,
    sort: { column: 'Ends', down: false },
    empty: 'None: the policy decides for everybody.',
    columns: [
      { label: 'Whom', text: whom, value: whom },
      { label: 'Limit', text: (row) => row.limit ?? (row.rule || row.shedding ? '–' : 'every limit'), value: (row) => row.limit ?? '' },
      { label: 'They are given', text: what },
      { label: 'Ends', text: (row) => moment(row.expires), value: (row) => row.expires },
      { label: 'Reason', text: (row) => row.reason },
      { label: 'Lift', draw: (cell, row) => button(cell, row, lift) },
    ],
  });
}

function button(cell, row, lift) {
  if (cell.firstChild) return;
  cell.append(element('button', { type: 'button', class: 'quiet', 'aria-label': `Lift ${whom(row)}`, onclick: () => lift(row) }, 'Lift'));
}

/// Names an override as a request for its end does; a value that nobody has is a name alone.
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
