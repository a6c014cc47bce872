// One limit: what it allows, who is held to it, and its traffic.

import { ask } from '../api.js';
import { trafficChart } from '../chart.js';
import { element, fill, notice, say } from '../dom.js';
import { allows, count, counted, many, moment } from '../format.js';
import { listing } from './listing.js';

export function limit({ refuse }, [name]) {
  const chart = trafficChart('Decisions of this limit');
  const facts = element('dl', { class: 'facts wide' });
  const rules = element('ul', { class: 'plain' });
  const totals = element('p', { class: 'words' });
  const tried = trial();
  const subjects = listing(name, { refuse });
  const switched = element('div');
  const node = element('div', {},
    element('p', { class: 'path' }, element('a', { href: '#/limits' }, 'Limits')),
    element('h1', {}, name), switched,
    element('section', { class: 'card', 'aria-label': 'What it allows' }, facts),
    element('section', { class: 'card', 'aria-label': 'Traffic' }, chart.node, totals),
    tried.node,
    subjects.node,
    element('section', { class: 'card' }, element('h2', {}, 'Rules that use it'), rules));
  const load = async () => {
    try {
      const policy = await ask('v1/policy');
      const meant = policy.limits.find((one) => one.name === name);
      if (!meant) return fill(facts, notice('calm', 'The policy in force has no such limit.'));
      describe(facts, meant);
      tried.describe(meant);
      if (meant.revealed && meant.per.length) subjects.show();
      fill(switched, meant.switch && notice('bad',
        `The policy does not decide: for everybody it is ${said(meant.switch)} until ${moment(meant.switch.expires)}. ${meant.switch.reason} `,
        element('a', { href: '#/overrides' }, 'Overrides')));
      const users = policy.rules.flatMap((rule) =>
        rule.limits.filter((used) => used.name === name).map((used) => ({ rule, used })));
      fill(rules, users.length ? users.map(ruleText) : element('li', {}, 'No rule uses it: descriptors and callers by name may.'));
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(facts, notice('bad', problem.message));
    }
  };
  load();
  const update = (feed) => {
    tried.update(feed.trials.get(name));
    const known = feed.limits.get(name);
    if (!known) return say(totals, 'It was not asked yet.');
    const { admitted, refused, degraded } = known.counts;
    say(totals, `Since the start: ${count(admitted)} admitted, ${count(refused)} refused by this limit, ${count(degraded)} degraded.`);
    chart.draw(feed, known.traffic);
  };
  return { node, update, title: name };
}

function describe(facts, meant) {
  const link = element('a', { href: '#/subject' }, counted(meant));
  const told = [
    ['Allows', allows(meant)],
    ['Counts', meant.per.length ? link : counted(meant)],
    ['Algorithm', meant.algorithm.replaceAll('_', ' ')],
    ['Refuses', meant.enforced_percent === 100 ? 'everybody' : `${meant.enforced_percent} % of subjects; the others are only counted`],
    ['Clients see it as', meant.visible ? meant.resource : 'nothing'],
  ];
  fill(facts, told.map(([word, value]) => element('div', {}, element('dt', {}, word), element('dd', {}, value))));
}

/// What another definition would do in its place, by its verdict and that of the limit.
function trial() {
  const words = element('p', { class: 'words' });
  const rows = [
    ['admitted admitted', 'Both admit'],
    ['admitted refused', 'Only the candidate refuses'],
    ['refused admitted', 'Only the limit refuses'],
    ['refused refused', 'Both refuse'],
  ].map(([verdicts, label]) => ({ verdicts, cell: element('dd', {}, '0'), label }));
  const node = element('section', { class: 'card', 'aria-label': 'Candidate', hidden: true },
    element('h2', {}, 'Candidate'), words,
    element('dl', { class: 'facts wide' }, rows.map(({ label, cell }) => element('div', {}, element('dt', {}, label), cell))));
  const describe = ({ candidate }) => {
    node.hidden = !candidate;
    if (candidate) say(words, `Tried on the same requests, refusing nobody: ${allows(candidate)}, ${candidate.algorithm.replaceAll('_', ' ')}. Since the start:`);
  };
  const update = (counts) => {
    for (const { verdicts, cell } of rows) say(cell, count(counts?.[verdicts] ?? 0));
  };
  return { node, describe, update };
}

/// What a switch makes of the limit.
function said({ quota, unlimited, blocked }) {
  if (blocked) return 'blocked';
  if (unlimited) return 'unlimited';
  return quota === undefined ? 'only counted' : `limited to ${many(quota, 'unit')}`;
}

function ruleText({ rule, used }) {
  return element('li', {}, element('b', {}, rule.name), ` charges ${many(used.cost, 'unit')} a request`,
    rule.mode === 'shadow' ? ', and only counts what it would refuse' : '',
    `; without the store: ${rule.on_failure}`);
}
