// How many clients the new one of two stores decides.

import { ask } from '../api.js';
import { announce, element, field, fill, notice, say } from '../dom.js';
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
    if (store === 'rollout') return dial(feed, refuse);
    if (store === 'shadow') return compared();
    return { children: [element('p', { class: 'words' },
      'This node has one store. With ', element('code', {}, 'store: { rollout: … }'),
      ' in the policy file, clients move to another one by a percentage that is turned here.')] };
  };
  return { node, update };
}

function dial(feed, refuse) {
  const now = element('p', { class: 'big' });
  const words = element('p', { class: 'words' });
  const facts = element('dl', { class: 'facts' }, ['transferred', 'transfer failures', 'refund failures'].map((word) =>
    element('div', {}, element('dt', {}, word), element('dd', {}, '–'))));
  const input = element('input', { type: 'number', min: 0, max: 100, step: 0.01, required: true, inputmode: 'decimal' });
  const told = element('div', { 'aria-live': 'polite' });
  let isTyped = false;
  input.addEventListener('input', () => { isTyped = true; });
  const turn = async (event) => {
    event.preventDefault();
    try {
      const { percent, before } = await ask('v1/rollout', { method: 'PUT', body: { percent: Number(input.value) } });
      const text = `Turned from ${before} % to ${percent} %, on this node.`;
      fill(told, notice('good', text));
      announce(text);
      isTyped = false;
      await feed.look();
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(told, notice('bad', problem.message));
    }
  };
  const form = element('form', { class: 'row', onsubmit: turn },
    field('Percent of clients', input), element('button', { type: 'submit' }, 'Turn'));
  const hint = element('p', { class: 'hint' }, 'From 0 to 100, with at most two places after the point. It stays so on this node until it is turned again.');
  const update = ({ counts }) => {
    say(now, `${counts.percent} %`);
    say(words, `of clients are decided by the new store (${counts.to.store}), the rest by the old one (${counts.from.store}).`);
    [counts.transferred, counts.transfer_failures, counts.refund_failures].forEach((value, place) =>
      say(facts.children[place].lastChild, count(value)));
    if (!isTyped && document.activeElement !== input) input.value = counts.percent;
  };
  return { children: [now, words, facts, form, hint, told], update };
}

/// Two stores of which only the first decides.
function compared() {
  const words = element('p', { class: 'words' });
  const names = ['compared', 'decision', 'remaining', 'reset', 'unanswered', 'skipped'];
  const facts = element('dl', { class: 'facts' }, names.map((word) =>
    element('div', {}, element('dt', {}, word), element('dd', {}, '–'))));
  const update = ({ counts }) => {
    say(words, `${counts.store.store} decides. ${counts.percent} % of clients are compared with the shadow store (${counts.shadow_store.store}). Differences by kind:`);
    const { compared: all, differences, unanswered, skipped } = counts;
    [all, differences.decision, differences.remaining, differences.reset, unanswered, skipped].forEach((value, place) =>
      say(facts.children[place].lastChild, count(value)));
  };
  return { children: [words, facts], update };
}
