// Tenants: their plans and own quotas, searched by name, set and removed.

import { request } from '../api.js';
import { announce, element, field, fill, notice } from '../dom.js';
import { count, many } from '../format.js';
import { Table } from '../table.js';

/// The tenants that one search shows.
const SHOWN = 100;

export function tenants({ refuse }) {
  const location = element('p', { class: 'words' });
  const errorBox = element('div');
  const result = element('div', { 'aria-live': 'polite' });
  const attempt = async (where, work) => {
    try {
      await work();
      fill(errorBox);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(where, notice('bad', problem.message));
    }
  };
  const prefix = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: 128 });
  const refresh = () => attempt(errorBox, async () => {
    const answer = await request(`v1/tenants?count=${SHOWN}&prefix=${encodeURIComponent(prefix.value)}`);
    table.set(answer.tenants.map((one) => ({ ...one, id: one.tenant })));
    location.textContent = words(answer);
  });
  const change = async (work, text) => {
    fill(result);
    await attempt(result, async () => {
      await work();
      fill(result, notice('good', text));
      announce(text);
    });
    await refresh();
  };
  const remove = ({ tenant }) => change(() => request(path(tenant), { method: 'DELETE' }), `Removed: ${tenant}. This tenant has the default quotas now.`);
  const form = new Form((name, body) => change(() => request(path(name), { method: 'PUT', body }), `Set: ${name}.`));
  const table = listed((row) => form.edit(row), remove);
  attempt(errorBox, async () => form.offer(await request('v1/policy')));
  const search = element('form', { class: 'row', onsubmit: (event) => { event.preventDefault(); refresh(); } },
    field('Search tenants', prefix, 'the start of the name'),
    element('button', { type: 'submit' }, 'Search'));
  refresh();
  const node = element('div', {},
    element('h1', {}, 'Tenants'),
    element('section', { class: 'card', 'aria-label': 'Set a tenant' },
      element('p', { class: 'words' }, 'Setting a tenant replaces its previous plan and own quotas. Units that the tenant has used stay charged, and its reset times do not change.'),
      form.node, result),
    element('section', { class: 'card', 'aria-label': 'Tenants with a plan or own quotas' }, search, location, errorBox, table.node));
  return { node };
}

/// Describes where the tenants are, and how many there are.
function words({ count: all, tenants: shown, next, location, loaded, failure }) {
  const where = location === 'store' ? 'Tenants are kept in the store and apply on every node.' : 'Tenants are kept in this process: other nodes do not have them, and they are lost when the process ends.';
  const some = next === null ? '' : ` The first ${count(shown.length)} that match are shown. To find the others, enter more of the name.`;
  const unread = loaded ? '' : ' This node has not read the tenants yet, so all tenants have the default quotas.';
  const failed = failure ? ` The last attempt to read the tenants failed: ${failure}.` : '';
  return `${many(all, 'tenant')}. ${where}${some}${unread}${failed}`;
}

/// The form of a row: name, plan and own quotas.
class Form {
  constructor(send) {
    this.name = element('input', { type: 'text', required: true, maxlength: 128, autocomplete: 'off', spellcheck: 'false' });
    this.plan = element('input', { type: 'text', maxlength: 64, autocomplete: 'off', spellcheck: 'false' });
    this.quotas = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', pattern: '\\s*([A-Za-z0-9_.\\-]+=[0-9]+(\\/[0-9]+)?\\s*)*' });
    this.limits = element('p', { class: 'hint' });
    this.node = element('form', { onsubmit: (event) => { event.preventDefault(); send(this.name.value.trim(), this.body()); } },
      element('div', { class: 'row' },
        field('Tenant', this.name), field('Plan', this.plan, 'empty for none'),
        field('Own quotas', this.quotas, 'LIMIT=QUOTA or LIMIT=QUOTA/BURST, separated by spaces'),
        element('button', { type: 'submit' }, 'Set')),
      this.limits);
  }

  /// Names the limits of the policy.
  offer({ limits }) {
    fill(this.limits, limits.length ? `Limits: ${limits.map(({ name }) => name).join(', ')}` : '');
  }

  /// Fills in the row of a tenant.
  edit({ tenant, plan, quotas }) {
    this.name.value = tenant;
    this.plan.value = plan ?? '';
    this.quotas.value = own(quotas);
    this.plan.focus();
  }

  body() {
    const quotas = {};
    for (const text of this.quotas.value.trim().split(/\s+/).filter(Boolean)) {
      const [limit, numbers] = text.split('=');
      const [quota, burst] = numbers.split('/').map(Number);
      quotas[limit] = burst === undefined ? { quota } : { quota, burst };
    }
    const plan = this.plan.value.trim();
    return { ...(plan && { plan }), ...(Object.keys(quotas).length && { quotas }) };
  }
}

/// `calls=1000/50 exports=20`.
function own(quotas = {}) {
  return Object.entries(quotas).map(([limit, { quota, burst }]) => `${limit}=${quota}${burst === undefined ? '' : `/${burst}`}`).join(' ');
}

/// Describes own quotas with separators of thousands.
function said(quotas = {}) {
  const one = ([limit, { quota, burst }]) => `${limit}: ${count(quota)}${burst === undefined ? '' : `, burst ${count(burst)}`}`;
  return Object.entries(quotas).map(one).join('; ') || '–';
}

function listed(edit, remove) {
  return new Table({
    caption: 'Tenants',
    key: (row) => row.id,
    sort: { column: 'Tenant', down: false },
    empty: 'No tenants are set: all have the default quotas.',
    columns: [
      { label: 'Tenant', text: (row) => row.tenant, value: (row) => row.tenant },
      { label: 'Plan', text: (row) => row.plan ?? '–', value: (row) => row.plan ?? '' },
      { label: 'Own quotas', text: ({ quotas }) => said(quotas) },
      { label: 'Change', draw: (cell, row) => button(cell, row, 'Change', edit) },
      { label: 'Remove', draw: (cell, row) => button(cell, row, 'Remove', remove) },
    ],
  });
}

function button(cell, row, word, work) {
  if (cell.firstChild) return;
  cell.append(element('button', { type: 'button', class: 'quiet', 'aria-label': `${word} ${row.tenant}`, onclick: () => work(row) }, word));
}

function path(tenant) {
  return `v1/tenants/${encodeURIComponent(tenant)}`;
}
