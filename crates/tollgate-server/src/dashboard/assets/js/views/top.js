// The subjects that were charged or refused the most units.

import { request } from '../api.js';
import { element, field, fill, notice, setText } from '../dom.js';
import { count, moment } from '../format.js';
import { Table } from '../table.js';

/// The number of subjects for one limit, and for each limit if all are shown.
const MOST = 100;
const MOST_OF_EACH = 10;
/// The samples of the feed between two requests.
const PATIENCE = 5;

export function top({ refuse }) {
  const limit = element('select', {}, element('option', { value: '' }, 'all limits'));
  const by = element('select', {},
    element('option', { value: 'refused' }, 'refused'), element('option', { value: 'charged' }, 'charged'));
  const since = element('p', { class: 'words' });
  const errorBox = element('div');
  const table = subjects();
  const node = element('div', {},
    element('h1', {}, 'Top subjects'),
    element('section', { class: 'card', 'aria-label': 'Top subjects' },
      element('form', { class: 'row', onsubmit: (event) => event.preventDefault() }, field('Ranked by', by), field('Limit', limit)),
      since, errorBox, table.node));
  let rounds = 0;
  let asked = 0;
  const look = async () => {
    rounds = 0;
    asked += 1;
    const mine = asked;
    const query = limit.value
      ? new URLSearchParams({ by: by.value, limit: limit.value, count: MOST })
      : new URLSearchParams({ by: by.value, count: MOST_OF_EACH });
    try {
      const found = await request(`v1/top?${query}`);
      // A newer request was sent: its response is the one to show.
      if (mine !== asked) return;
      table.set(found.limits.flatMap(({ limit: name, subjects: all }) =>
        all.map((one) => ({ ...one, limit: name, by: found.by }))));
      setText(since, `Units ${found.by} at this node since ${moment(found.since)}. The numbers are approximate: the true number is at most the value in the column Units, and lower by at most the value in the column Error. If the policy does not reveal the subjects of a limit, their keyed hashes are shown.`);
      fill(errorBox);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(errorBox, notice('bad', problem.message));
    }
  };
  for (const choice of [by, limit]) choice.addEventListener('change', look);
  const update = (feed) => {
    name(limit, feed);
    rounds += 1;
    if (rounds === PATIENCE || asked === 0) look();
  };
  return { node, update };
}

/// Lists the limits that have counters. The selected one stays selected.
function name(limit, feed) {
  const names = [...feed.limits.keys()].sort();
  if (limit.options.length === names.length + 1) return;
  const chosen = limit.value;
  fill(limit, element('option', { value: '' }, 'all limits'), names.map((one) => element('option', { value: one }, one)));
  limit.value = chosen;
}

function subjects() {
  return new Table({
    caption: 'Subjects',
    search: 'Search subjects',
    key: (row) => JSON.stringify([row.by, row.limit, row.subject]),
    sort: { column: 'Units', down: true },
    empty: 'No subjects yet.',
    columns: [
      { label: 'Subject', text: (row) => words(row.subject), value: (row) => words(row.subject), link },
      { label: 'Limit', text: (row) => row.limit, value: (row) => row.limit },
      { label: 'Units', hint: 'The most units of this subject that can have been charged or refused.', number: true, text: (row) => count(row.units), value: (row) => row.units },
      { label: 'Error', hint: 'The number in the column Units may be too high by at most this.', number: true, text: (row) => count(row.error), value: (row) => row.error },
      { label: 'Override', text: () => 'Override', link: override },
    ],
  });
}

/// Returns the link to the subject's page, if its values are known: hashes cannot be looked up.
function link({ subject }) {
  const values = Object.entries(subject);
  const isKnown = values.length > 0 && values.every(([, value]) => value !== null && !value.startsWith('#'));
  return isKnown ? `#/subject?${new URLSearchParams(values)}` : null;
}

/// Returns the link to the form for an override of the subject. A hash can be used there, too.
function override({ subject, limit }) {
  const values = Object.entries(subject).filter(([, value]) => value !== null);
  return `#/overrides?${new URLSearchParams([['limit', limit], ...values])}`;
}

function words(subject) {
  return Object.entries(subject).map(([name, value]) => `${name}=${value ?? '(none)'}`).join(', ') || 'all clients';
}
