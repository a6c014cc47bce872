// The percentage of clients that the new one of two stores decides.

import { request } from '../api.js';
import { announce, element, field, fill, notice, setText } from '../dom.js';
import { count } from '../format.js';

export function rollout({ feed, refuse }) {
  const body = element('section', { class: 'card', 'aria-label': 'Rollout' });
  const node = element('div', {}, element('h1', {}, 'Rollout'), body);
  let drawn = null;
  const update = ({ status }) => {
    if (drawn?.store !== status.store) {
      drawn = { store: status.store, ...draw(status) };
      fill(body, drawn.children);
    }
    drawn.update?.(status);
  };
  const draw = ({ store }) => {
    if (store === 'rollout') return rolloutForm(feed, refuse);
    if (store === 'shadow') return compared();
    return { children: [element('p', { class: 'words' },
      'This node has one store. To move clients to a second store step by step, write ', element('code', {}, 'store: { rollout: … }'),
      ' in the policy file. This view then shows and sets the percentage of clients that use the new store.')] };
  };
  return { node, update };
}

function rolloutForm(feed, refuse) {
  const now = element('p', { class: 'big' });
  const description = element('p', { class: 'words' });
  const facts = element('dl', { class: 'facts' }, [
    ['transferred', 'Counters that were transferred to the new store.'],
    ['transfer failures', 'Transfers of counters that failed.'],
    ['refund failures', 'Refunds that failed because a store did not answer.'],
  ].map(([term, hint]) =>
    element('div', { title: hint }, element('dt', {}, term), element('dd', {}, '–'))));
  const input = element('input', { type: 'number', min: 0, max: 100, step: 0.01, required: true, inputmode: 'decimal' });
  const result = element('div', { 'aria-live': 'polite' });
  let isTyped = false;
  input.addEventListener('input', () => { isTyped = true; });
  const turn = async (event) => {
    event.preventDefault();
    try {
      const { percent, before } = await request('v1/rollout', { method: 'PUT', body: { percent: Number(input.value) } });
      const text = `Changed from ${before} % to ${percent} % on this node.`;
      fill(result, notice('good', text));
      announce(text);
      isTyped = false;
      await feed.observe();
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(result, notice('bad', problem.message));
    }
  };
  const form = element('form', { class: 'row', onsubmit: turn },
    field('Percent of clients', input), element('button', { type: 'submit' }, 'Set'));
  const hint = element('p', { class: 'hint' }, 'From 0 to 100, with at most two decimal places. It applies to this node until it is set again, the percentage in the policy file changes, or the node restarts.');
  const update = ({ counts }) => {
    setText(now, `${counts.percent} %`);
    setText(description, `of the clients use the new store (${counts.to.store}). The others use the old store (${counts.from.store}).`);
    [counts.transferred, counts.transfer_failures, counts.refund_failures].forEach((value, index) =>
      setText(facts.children[index].lastChild, count(value)));
    if (!isTyped && document.activeElement !== input) input.value = counts.percent;
  };
  return { children: [now, description, facts, form, hint, result], update };
}

/// Shows the comparison with a shadow store, which does not decide.
function compared() {
  const description = element('p', { class: 'words' });
  const names = [
    ['compared', 'Calls that were compared with the shadow store.'],
    ['another decision', 'Comparisons in which one store admitted and the other refused.'],
    ['other remaining units', 'Comparisons with the same decision and different remaining units.'],
    ['another reset time', 'Comparisons with the same decision and the same remaining units, in which the stores report different reset times.'],
    ['unanswered', 'Calls that the shadow store did not answer.'],
    ['skipped', 'Calls that were not sent to the shadow store because its queue was full.'],
  ];
  const facts = element('dl', { class: 'facts' }, names.map(([term, hint]) =>
    element('div', { title: hint }, element('dt', {}, term), element('dd', {}, '–'))));
  const update = ({ counts }) => {
    setText(description, `The store (${counts.store.store}) decides. The requests of ${counts.percent} % of clients are also sent to the shadow store (${counts.shadow_store.store}), and the results are compared:`);
    const { compared: all, differences, unanswered, skipped } = counts;
    [all, differences.decision, differences.remaining, differences.reset, unanswered, skipped].forEach((value, index) =>
      setText(facts.children[index].lastChild, count(value)));
  };
  return { children: [description, facts], update };
}
