// Simulate a policy on the requests of this node or of an access log.

import { request } from '../api.js';
import { announce, element, field, fill, notice } from '../dom.js';
import { count, many, percent } from '../format.js';
import { limitsChart, timelineChart } from '../simulated.js';
import { Table } from '../table.js';

/// The largest log, in bytes, and the longest time of a simulation, in milliseconds.
const MOST_BYTES = 8 << 20;
const PATIENCE = 180_000;

export function whatIf({ refuse }) {
  const sampled = choice('This node’s requests of the last hour', true);
  const uploaded = choice('An access log', false);
  const select = (fromLog) => {
    sampled.input.checked = !fromLog;
    uploaded.input.checked = fromLog;
    file.required = fromLog;
  };
  const file = element('input', { type: 'file', accept: '.log,.json,.jsonl,.txt,.gz', onchange: () => select(true) });
  for (const one of [sampled, uploaded]) one.input.addEventListener('change', () => select(uploaded.input.checked));
  const policy = element('textarea', { rows: 6, spellcheck: 'false', class: 'code' });
  const status = element('div', { 'aria-live': 'polite' });
  const results = element('div');
  const button = element('button', { type: 'submit' }, 'Simulate');
  const run = async (event) => {
    event.preventDefault();
    const log = uploaded.input.checked ? file.files[0] : null;
    if (log && log.size > MOST_BYTES) {
      return fill(status, notice('bad', `The file has more than ${MOST_BYTES >> 20} MiB. Compress it, or use \`tollgate simulate\`.`));
    }
    button.disabled = true;
    fill(results);
    fill(status, notice('calm', 'Simulating…'));
    try {
      const body = log ? { log: await base64(log) } : {};
      if (policy.value.trim()) body.policy = policy.value;
      const found = await request('v1/simulate', { method: 'POST', body, timeout: PATIENCE });
      fill(status);
      fill(results, report(found));
      announce(`Simulated ${many(found.requests, 'request')}: ${count(found.refused)} refused`);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(status, notice('bad', element('p', {}, problem.title ?? 'No response'), element('pre', {}, problem.message)));
    } finally {
      button.disabled = false;
    }
  };
  const form = element('form', { onsubmit: run },
    element('fieldset', { class: 'choices' }, element('legend', {}, 'Requests to simulate'), sampled.node, uploaded.node),
    dropping(element('div', { class: 'drop' },
      field('Access log', file, 'Common, combined or JSON lines, plain or gzip; at most 8 MiB. Drop it here or choose it.')),
    file, () => select(true)),
    field('Another policy to try (optional)', policy, 'The text of a policy file. It is compared with the current policy.'),
    element('p', {}, button));
  const node = element('div', {},
    element('h1', {}, 'What if'),
    element('section', { class: 'card', 'aria-label': 'Simulation' },
      element('p', { class: 'words' }, 'Shows how many of the selected requests the current policy would refuse. If you enter another policy, it also shows how many that policy would refuse. The simulation uses the times of the requests and its own counters. No subject is charged.'),
      form, status),
    results);
  return { node };
}

/// Creates a radio button for the source of the requests.
function choice(label, checked) {
  const input = element('input', { type: 'radio', name: 'requests', checked });
  return { input, node: element('label', { class: 'choice' }, input, label) };
}

/// Accepts a file that is dropped on `zone`.
function dropping(zone, file, dropped) {
  const over = (isOver) => (event) => {
    event.preventDefault();
    zone.classList.toggle('over', isOver);
  };
  zone.addEventListener('dragover', over(true));
  zone.addEventListener('dragleave', over(false));
  zone.addEventListener('drop', (event) => {
    over(false)(event);
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    dropped();
  });
  return zone;
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

function report(found) {
  const outcomes = [found, found.compare].filter(Boolean);
  if (!found.requests) {
    return element('section', { class: 'card' }, element('p', {}, found.sample
      ? 'This node has received no requests in the last hour.' : 'The log has no requests.'), oddities(found));
  }
  return [
    element('section', { class: 'card' }, element('h2', {}, 'Total'), whole(outcomes),
      element('p', { class: 'words' }, period(found)), found.sample && sample(found.sample), oddities(found)),
    element('section', { class: 'card', 'aria-label': 'Over time' }, timelineChart(outcomes)),
    element('section', { class: 'card', 'aria-label': 'Refusals by limit' }, limitsChart(outcomes) ?? 'No limit refused a request.'),
    element('section', { class: 'card' }, element('h2', {}, 'By limit'), limits(outcomes)),
    element('section', { class: 'card' }, element('h2', {}, 'Most affected subjects'), subjects(found)),
  ];
}

/// The counters of a simulation, with their tooltips.
const OUTCOMES = {
  requests: 'Requests that were simulated.',
  admitted: 'Requests that the policy would admit.',
  refused: 'Requests that the policy would refuse.',
  refunded: 'Admitted requests whose charge would be refunded because of the response.',
  unlimited: 'Requests that would not be charged on any limit.',
  ambiguous: 'Refused requests that services can interpret in different ways. They would be answered with 400 and not charged.',
};

/// The counters that are shown only if one of them is not zero.
const RARE = ['ambiguous'];

function whole(outcomes) {
  const columns = [
    { label: 'Policy', text: (row) => row.policy },
    ...Object.entries(OUTCOMES).filter(([name]) => !RARE.includes(name) || outcomes.some((row) => row[name])).map(([name, hint]) =>
      ({ label: name[0].toUpperCase() + name.slice(1), hint, number: true, text: (row) => count(row[name]) })),
    { label: 'Refusal rate', hint: 'Refused requests as a percentage of all requests.', number: true, text: (row) => percent(row.refused, row.requests) },
  ];
  return filled({ caption: 'Total', key: (row) => `${outcomes.indexOf(row)}`, columns }, outcomes);
}

function limits(outcomes) {
  const [now, other] = outcomes;
  const names = [...new Set(outcomes.flatMap(({ limits: all }) => Object.keys(all)))];
  const rows = names.map((name) => ({ name, now: now.limits[name], other: other?.limits[name] }));
  const number = (label, hint, of) => ({ label, hint, number: true, text: (row) => shown(of(row)), value: (row) => of(row) ?? -1 });
  const columns = [
    { label: 'Limit', text: (row) => row.name, value: (row) => row.name },
    { label: 'Allows', text: (row) => row.now?.rule ?? '–' },
    number('Requests', 'Requests that were evaluated on this limit.', (row) => row.now?.requests),
    number('Refused', 'Requests that this limit refused.', (row) => row.now?.refused),
    number('Subjects', 'Different subjects that this limit counted.', (row) => row.now?.subjects),
    number('Subjects refused', 'Subjects with at least one refusal.', (row) => row.now?.subjects_refused),
    number('Peak usage', 'The most units that one subject used at one moment.', (row) => row.now?.peak),
  ];
  if (other) {
    columns.push({ label: 'In the other policy', hint: 'What the limit with this name allows in the other policy.', text: (row) => row.other?.rule ?? '–' }, number('Refused there', 'Requests that the limit refused in the other policy.', (row) => row.other?.refused));
  }
  return filled({
    caption: 'By limit', search: names.length > 10 ? 'Search limits' : null, key: (row) => row.name,
    sort: { column: 'Refused', down: true }, columns,
  }, rows);
}

function subjects(found) {
  const columns = [
    { label: 'Subject', text: (row) => row.subject },
    { label: 'Client', text: (row) => row.client },
    { label: 'Limit', text: (row) => row.limit },
    { label: 'Requests', hint: 'Requests of this subject on this limit.', number: true, text: (row) => count(row.requests) },
    { label: 'Refused', hint: 'Requests of this subject that this limit refused.', number: true, text: (row) => count(row.refused) },
    { label: 'Peak usage', hint: 'The most units that the subject used at one moment, of those that the limit allows.', number: true, text: (row) => `${count(row.peak)} of ${count(row.capacity)}` },
  ];
  return filled({ caption: 'Subjects', key: (row) => `${row.limit} ${row.subject}`, columns, empty: 'None.' }, found.subjects);
}

function filled(settings, rows) {
  const table = new Table({ empty: 'None.', ...settings });
  table.set(rows);
  return table.node;
}

function shown(value) {
  return value === undefined ? '–' : count(value);
}

function period({ from, to }) {
  return `From ${from} to ${to}.`;
}

/// Explains what the sample of this node contains.
function sample({ one_of: oneOf }) {
  const clients = oneOf > 1 ? `all requests of about one in ${count(oneOf)} clients` : 'all requests';
  return element('p', { class: 'words' }, `The sample contains ${clients}. It does not contain responses. Refunds and limits `
    + 'that apply only to certain response statuses are simulated as if no response had one of these statuses. Credentials are hashed.');
}

/// Shows the lines that could not be read, with examples.
function oddities({ malformed, malformed_examples: examples, late }) {
  if (!malformed && !late) return null;
  return notice('calm',
    element('p', {}, `${many(malformed, 'line')} could not be read. ${many(late, 'line')} ${late === 1 ? 'was' : 'were'} too far out of order to be sorted: ${late === 1 ? 'it was' : 'they were'} evaluated at the latest time that the log had reached.`),
    examples.length && element('ul', {}, examples.map(({ line, why, excerpt }) =>
      element('li', {}, `line ${line}: ${why} `, element('code', {}, excerpt)))));
}
