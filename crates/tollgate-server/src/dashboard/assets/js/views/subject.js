// One subject: its status on every limit that counts it, and resetting its usage.

import { request } from '../api.js';
import { spark } from '../chart.js';
import { announce, element, field, fill, notice, setText, shape } from '../dom.js';
import { allows, count, many, moment } from '../format.js';
import { end, ends, what, describeTarget } from '../override.js';
import { KEPT } from '../series.js';
import { Table } from '../table.js';

/// The most limits of one request.
const AT_ONCE = 32;
/// Sources whose values are in the policy, not in a request.
const POLICY_SOURCES = new Set(['constant']);

export function subject({ refuse }) {
  const form = element('form', { class: 'row' });
  const message = element('div', { 'aria-live': 'polite' });
  const results = element('section', { class: 'card', 'aria-label': 'Status', hidden: true });
  const node = element('div', {},
    element('h1', {}, 'Subject'),
    element('section', { class: 'card', 'aria-label': 'Values' },
      element('p', { class: 'words' }, 'Enter the values as they appear in a request. A credential may include its scheme, such as Bearer.'), form, message),
    results);
  let statuses = null;
  const attempt = async (work) => {
    try {
      await work();
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(message, notice('bad', problem.message));
    }
  };
  attempt(async () => {
    const policy = await request('v1/policy');
    const inputs = draw(form, policy);
    prefill(inputs);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      fill(message);
      results.hidden = true;
      attempt(async () => {
        statuses = new LimitStatuses(policy, valuesOf(inputs));
        await statuses.refresh();
        fill(results, statuses.node);
        results.hidden = false;
        announce(`${many(statuses.limits.length, 'limit')} found`);
      });
    });
    if ([...inputs.values()].some((input) => input.value)) form.requestSubmit();
  });
  const update = () => {
    if (statuses?.isShown) attempt(() => statuses.refresh());
  };
  return { node, update };
}

function draw(form, { subjects, limits }) {
  const counts = new Set(limits.flatMap((limit) => limit.per));
  const inputs = new Map();
  const fields = subjects.filter(({ name, source }) => counts.has(name) && !POLICY_SOURCES.has(source))
    .map(({ name, source, secret }) => {
      const input = element('input', { type: secret ? 'password' : 'text', autocomplete: 'off', spellcheck: 'false' });
      inputs.set(name, input);
      return field(name, input, `source: ${source.replaceAll('_', ' ')}${secret ? '; the value is hashed before use' : ''}`);
    });
  fill(form, fields, element('button', { type: 'submit' }, 'Show'));
  if (!fields.length) fill(form, element('p', {}, 'No limit of this policy counts by subject: each has one counter for all clients.'));
  return inputs;
}

/// Fills in the subject of the address: `#/subject?address=192.0.2.1`.
function prefill(inputs) {
  const [, query] = location.hash.split('?');
  for (const [name, value] of new URLSearchParams(query ?? '')) {
    if (inputs.has(name)) inputs.get(name).value = value;
  }
}

function valuesOf(inputs) {
  const values = {};
  for (const [name, input] of inputs) {
    if (input.value.trim()) values[name] = input.value.trim();
  }
  return values;
}

/// The status of a subject, read periodically.
class LimitStatuses {
  constructor(policy, values) {
    this.values = values;
    this.limits = policy.limits.filter((limit) =>
      limit.per.length > 0 && limit.per.every((name) => name in values));
    this.known = new Map(policy.limits.map((limit) => [limit.name, limit]));
    this.history = new Map();
    this.refreshes = 0;
    this.isLooking = false;
    this.table = table(this);
    this.overrides = overrides();
    this.overrideSection = element('section', { 'aria-label': 'Overrides' },
      element('h2', {}, 'Overrides'),
      element('p', { class: 'words' }, 'While an override is in force, it replaces the policy’s limit for this subject. ', element('a', { href: '#/overrides' }, 'All overrides')),
      this.overrides.node);
    this.overridden = element('div');
    this.forgotten = element('div', { 'aria-live': 'polite' });
    this.node = element('div', {},
      element('h2', {}, this.title()),
      this.limits.length
        ? [this.overridden, this.table.node, this.actions(), this.forgotten]
        : element('p', {}, 'No limit counts this combination of values. A limit that counts per user and address needs both values.'));
  }

  title() {
    // The title contains no values, because they may be credentials.
    return many(this.limits.length, 'limit counts', 'limits count') + ' this subject';
  }

  get isShown() {
    return this.node.isConnected && this.limits.length > 0;
  }

  /// Reads the status, unless an earlier read is still running: a policy may have more limits than can
  /// be read in one round.
  async refresh() {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      await this.gather();
    } finally {
      this.isLooking = false;
    }
  }

  async gather() {
    const rows = [];
    for (let from = 0; from < this.limits.length; from += AT_ONCE) {
      rows.push(...await this.statusesOf(this.limits.slice(from, from + AT_ONCE)));
    }
    this.refreshes += 1;
    for (const row of rows) {
      if (!this.history.has(row.name)) this.history.set(row.name, new Float64Array(KEPT).fill(NaN));
      this.history.get(row.name)[this.refreshes % KEPT] = isCounted(row) ? row.used : NaN;
    }
    this.table.set(rows);
    const active = rows.filter((row) => row.definition).map(({ name, definition: one }) => ({ ...one, limit: name }));
    this.overrides.set(active);
    if (Boolean(this.overrideSection.parentNode) !== active.length > 0) fill(this.overridden, active.length > 0 && this.overrideSection);
  }

  /// Reads the status and the overrides of `limits`, at most `AT_ONCE` of them.
  async statusesOf(limits) {
    const peek = (some) => request('v1/peek', { method: 'POST', body: { limits: some.map((limit) => this.named(limit)) } });
    const { statuses, overrides: found = [] } = await peek(limits);
    const overrideByLimit = new Map(found.map((one) => [one.limit, one]));
    const byName = new Map(statuses.map((one) => [one.name, one]));
    // If one limit blocks the subject, the response has no status of the other limits.
    const isBlocked = found.some(({ effect }) => effect === 'blocked');
    const isEvaluated = (name) => !overrideByLimit.has(name) || overrideByLimit.get(name).effect === 'quota';
    const missing = limits.filter(({ name }) => isBlocked && !byName.has(name) && isEvaluated(name));
    if (missing.length) {
      for (const one of (await peek(missing)).statuses) byName.set(one.name, one);
    }
    return limits.filter(({ name }) => byName.has(name) || overrideByLimit.has(name)).map(({ name }) => {
      const { effect, definition } = overrideByLimit.get(name) ?? {};
      return { name, ...byName.get(name), effect, definition };
    });
  }

  named({ name, per }) {
    return { name, cost: 0, subject: Object.fromEntries(per.map((one) => [one, this.values[one]])) };
  }

  actions() {
    const dialog = element('dialog', { 'aria-labelledby': 'forget-title' },
      element('h2', { id: 'forget-title' }, 'Reset the usage of this subject?'),
      element('p', {}, `The next charge on ${many(this.limits.length, 'limit')} starts from zero, and receipts of earlier charges become invalid.`),
      element('p', { class: 'buttons' },
        element('button', { type: 'button', class: 'danger', onclick: () => { dialog.close(); this.forget(); } }, 'Reset'),
        element('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Cancel')));
    return element('p', { class: 'buttons' }, dialog,
      element('button', { type: 'button', class: 'danger', onclick: () => dialog.showModal() }, 'Reset usage'));
  }

  async forget() {
    try {
      for (let from = 0; from < this.limits.length; from += AT_ONCE) {
        await request(`v1/standing?${this.query(this.limits.slice(from, from + AT_ONCE))}`, { method: 'DELETE' });
      }
      const text = 'The usage was reset.';
      fill(this.forgotten, notice('good', text));
      announce(text);
      await this.refresh();
    } catch (problem) {
      fill(this.forgotten, notice('bad', problem.message));
    }
  }

  query(limits) {
    const query = new URLSearchParams();
    for (const { name } of limits) query.append('limit', name);
    for (const name of new Set(limits.flatMap((limit) => limit.per))) {
      query.append(`subject[${name}]`, this.values[name]);
    }
    return query;
  }
}

function table(statuses) {
  return new Table({
    caption: 'Status of each limit',
    key: (row) => row.name,
    empty: 'No status.',
    columns: [
      { label: 'Name', text: (row) => row.name, value: (row) => row.name, link: (row) => `#/limits/${encodeURIComponent(row.name)}` },
      { label: 'Allows', text: (row) => allows(statuses.known.get(row.name)) },
      { label: 'Decision', hint: 'The decision on a request of one unit, if it arrived now.', text: (row) => now(row)[0], draw: decision },
      { label: 'Used', hint: 'Units that count against the limit at this moment.', number: true, text: (row) => units(row, row.used), value: (row) => row.used },
      { label: 'Limit', hint: 'The quota, or the burst of a token bucket: when so many units are used, further requests are refused.', number: true, text: (row) => units(row, row.limit), value: (row) => row.limit },
      { label: 'Remaining', hint: 'Units that are left.', number: true, text: (row) => units(row, row.remaining), value: (row) => row.remaining },
      { label: 'Share used', hint: 'Used units as a share of the limit.', draw: meter },
      { label: 'History', hint: 'Used units since this page was opened.', draw: (cell, row) => drawn(cell, statuses, row) },
      { label: 'Reset', hint: 'For an admitted subject, the time at which all units are available again. For a refused one, the time at which a request of one unit is admitted again.', text: (row) => (isCounted(row) ? moment(row.reset) : '–') },
    ],
  });
}

function overrides() {
  return new Table({
    caption: 'Overrides of this subject',
    key: (row) => row.limit,
    empty: 'None.',
    columns: [
      { label: 'Limit', text: (row) => row.limit, value: (row) => row.limit },
      { label: 'Effect', text: what },
      { label: 'Applies to', text: describeTarget },
      { label: 'Ends', text: ends, value: end },
      { label: 'Reason', text: (row) => row.reason },
    ],
  });
}

/// Describes the decision on a request now, with the kind of its pill.
function now({ effect, admits }) {
  if (effect === 'blocked') return ['blocked', 'bad'];
  if (effect === 'unlimited') return ['unlimited', 'good'];
  // Without a status, the limit is not enforced for this subject.
  if (effect === 'counted' || admits === undefined) return ['counted, never refused', 'good'];
  return admits ? ['admitted', 'good'] : ['refused', 'bad'];
}

/// Returns whether the status contains used units. A blocked or unlimited subject is not counted; the
/// status of a blocked one only shows when the override ends.
function isCounted({ effect, used }) {
  return effect !== 'blocked' && used !== undefined;
}

function units(row, value) {
  return isCounted(row) ? count(value) : '–';
}

function decision(cell, row) {
  const [text, kind] = now(row);
  if (!cell.firstChild) cell.append(element('span', {}));
  cell.firstChild.className = `pill ${kind}`;
  setText(cell.firstChild, text);
}

function meter(cell, row) {
  if (!isCounted(row)) return setText(cell, '–');
  const { used, limit, name } = row;
  // Replaces the text for a subject that was not counted by a meter.
  if (!cell.firstElementChild) fill(cell);
  if (!cell.firstChild) cell.append(element('meter', { min: 0 }));
  const node = cell.firstChild;
  node.max = Math.max(1, limit);
  node.low = 0.8 * node.max;
  node.high = 0.999 * node.max;
  node.optimum = 0;
  node.value = Math.min(used, limit);
  node.setAttribute('aria-label', `${name}: ${count(used)} of ${count(limit)} used`);
}

/// The samples of a small chart.
const SPARK = 48;

/// Draws the used units of each sample. Samples are numbered instead of timed.
function drawn(cell, { history, refreshes }, { name }) {
  if (!cell.firstChild) cell.append(shape('svg', { class: 'spark', width: 96, height: 22, 'aria-hidden': 'true' }));
  const values = history.get(name);
  const first = Math.max(1, refreshes - SPARK + 1);
  const rounds = Array.from({ length: refreshes - first + 1 }, (_, index) => first + index);
  const points = rounds.map((round) => [round, values[round % KEPT]]);
  spark(cell.firstChild, points, refreshes, SPARK, 'refused');
}
