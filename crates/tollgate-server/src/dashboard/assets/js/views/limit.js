// One limit: its definition, its subjects and its traffic.

import { request } from '../api.js';
import { trafficChart } from '../chart.js';
import { element, fill, notice, setText } from '../dom.js';
import { allows, count, many } from '../format.js';
import { until } from '../override.js';
import { matched } from '../match.js';
import { listing } from './listing.js';

export function limit({ refuse }, [name]) {
  const chart = trafficChart('Decisions of this limit');
  const facts = element('dl', { class: 'facts wide' });
  const rules = element('ul', { class: 'plain' });
  const totals = element('p', { class: 'words' });
  const trialPanel = trial();
  const subjects = listing(name, { refuse });
  const switched = element('div');
  const node = element('div', {},
    element('p', { class: 'path' }, element('a', { href: '#/limits' }, 'Limits')),
    element('h1', {}, name), switched,
    element('section', { class: 'card', 'aria-label': 'Definition' }, facts),
    element('section', { class: 'card', 'aria-label': 'Traffic' }, chart.node, totals),
    trialPanel.node,
    subjects.node,
    element('section', { class: 'card' }, element('h2', {}, 'Rules that use this limit'), rules));
  const load = async () => {
    try {
      const policy = await request('v1/policy');
      const meant = policy.limits.find((one) => one.name === name);
      if (!meant) return fill(facts, notice('calm', 'The current policy has no limit with this name.'));
      trialPanel.describe(meant);
      if (meant.revealed && meant.per.length) subjects.show();
      fill(switched, meant.switch && notice('bad',
        `An override for all subjects is in force ${until(meant.switch)}: ${describeDefinition(meant.switch)}. Reason: ${meant.switch.reason} `,
        element('a', { href: '#/overrides' }, 'Overrides')));
      const users = policy.rules.flatMap((rule) =>
        rule.limits.filter((used) => used.name === name).map((used) => ({ rule, used })));
      describe(facts, meant, users.length > 0 && users.every(({ rule }) => rule.mode === 'shadow'));
      fill(rules, users.length ? users.map(ruleText) : element('li', {}, 'No rule uses this limit. Callers and Envoy’s descriptors can still charge it by its name.'));
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(facts, notice('bad', problem.message));
    }
  };
  load();
  const update = (feed) => {
    trialPanel.update(feed.trials.get(name));
    const known = feed.limits.get(name);
    if (!known) return setText(totals, 'No decisions yet.');
    const { admitted, refused, degraded, wouldAdmit, wouldRefuse } = known.counts;
    const evaluated = wouldAdmit + wouldRefuse;
    const shadow = evaluated ? ` In shadow mode the limit would have refused ${count(wouldRefuse)} of ${many(evaluated, 'request')}.` : '';
    setText(totals, `Requests since the node started: ${count(admitted)} admitted, ${count(refused)} refused by this limit. The fallback decided ${count(degraded)} of them (degraded).${shadow}`);
    chart.draw(feed, known.traffic);
  };
  return { node, update, title: name };
}

function describe(facts, meant, isShadow) {
  const link = element('a', { href: '#/subject' }, meant.per.join(', '));
  const rows = [
    ['Allows', allows(meant)],
    ['Counted per', meant.per.length ? link : 'all clients together'],
    ['Algorithm', meant.algorithm.replaceAll('_', ' ')],
    ['Enforced for', isShadow ? 'no subjects: its rules are in shadow mode' : meant.enforced_percent === 100 ? 'all subjects' : `${meant.enforced_percent} % of subjects; requests of the others are counted and never refused`],
    ['Name in response headers', meant.visible ? meant.resource : 'none: the limit is hidden from clients'],
  ];
  fill(facts, rows.map(([word, value]) => element('div', {}, element('dt', {}, word), element('dd', {}, value))));
}

/// The candidate definition, with the numbers of requests by its decision and that of the limit.
function trial() {
  const description = element('p', { class: 'words' });
  const rows = [
    ['admitted admitted', 'Both admit', 'Requests that the limit and its candidate admit.'],
    ['admitted refused', 'Only the candidate refuses', 'Requests that the limit admitted and its candidate would refuse.'],
    ['refused admitted', 'Only the limit refuses', 'Requests that the limit refused and its candidate would admit.'],
    ['refused refused', 'Both refuse', 'Requests that the limit and its candidate refuse.'],
  ].map(([decisions, label, hint]) => ({ decisions, cell: element('dd', {}, '0'), label, hint }));
  const node = element('section', { class: 'card', 'aria-label': 'Candidate', hidden: true },
    element('h2', {}, 'Candidate'), description,
    element('dl', { class: 'facts wide' }, rows.map(({ label, hint, cell }) => element('div', { title: hint }, element('dt', {}, label), cell))));
  const describe = ({ candidate }) => {
    node.hidden = !candidate;
    if (candidate) setText(description, `A second definition of this limit. It is evaluated on the same requests, without refusing any: ${allows(candidate)}, ${candidate.algorithm.replaceAll('_', ' ')}. Requests since the node started:`);
  };
  const update = (counts) => {
    for (const { decisions, cell } of rows) setText(cell, count(counts?.[decisions] ?? 0));
  };
  return { node, describe, update };
}

/// Describes the effect of a kill switch on the limit.
function describeDefinition({ quota, unlimited, blocked }) {
  if (blocked) return 'every request is refused';
  if (unlimited) return 'the limit is off';
  return quota === undefined ? 'requests are counted and never refused' : `the quota is ${many(quota, 'unit')}`;
}

function ruleText({ rule, used }) {
  return element('li', {}, element('b', {}, rule.name), ` charges ${many(used.cost, 'unit')} a request`,
    ` (${matched(rule)})`,
    rule.mode === 'shadow' ? ' in shadow mode: it counts and never refuses' : '',
    `; fallback: ${rule.on_failure}`);
}
