// Which subjects a limit has, where its policy reveals them.

import { ask } from '../api.js';
import { announce, element, field, fill, notice, say } from '../dom.js';
import { many } from '../format.js';

/// Subjects that are shown at most: whoever seeks one of more types more of its name.
const MOST = 500;
/// Pages that are asked for at a time, each of a bounded part of the store.
const PAGES = 10;

/// A card that looks for subjects of `limit`, hidden until it is shown.
export function listing(limit, { refuse }) {
  const prefix = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false' });
  const words = element('p', { class: 'words' }, 'Those whose name begins so; without one, all.');
  const found = element('ul', { class: 'plain' });
  const trouble = element('div');
  const more = element('button', { type: 'button', hidden: true }, 'Look further');
  const form = element('form', { class: 'row' }, field('Begins with', prefix), element('button', { type: 'submit' }, 'List'));
  const node = element('section', { class: 'card', 'aria-label': 'Subjects', hidden: true },
    element('h2', {}, 'Subjects'), form, words, trouble, found, more);
  let asked = 0;
  let state = { prefix: '', after: null, subjects: new Map() };
  const look = async () => {
    asked += 1;
    const mine = asked;
    fill(trouble);
    try {
      let told;
      for (let page = 0; page < PAGES; page += 1) {
        const query = new URLSearchParams({ limit, prefix: state.prefix, ...(state.after && { after: state.after }) });
        told = await ask(`v1/subjects?${query}`);
        // Another question went out meanwhile, whose answer is the one to show.
        if (mine !== asked) return;
        for (const subject of told.subjects) state.subjects.set(JSON.stringify(subject), subject);
        state.after = told.next;
        if (!told.next || state.subjects.size >= MOST) break;
      }
      show(told.source);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(trouble, notice('bad', problem.message));
    }
  };
  const show = (source) => {
    const all = [...state.subjects.values()].slice(0, MOST);
    fill(found, all.map((subject) => element('li', {}, entry(subject))));
    more.hidden = !state.after || state.subjects.size >= MOST;
    const where = source === 'store' ? 'kept in the store' : 'that this node decided on lately: its store keeps no names';
    const text = `${many(state.subjects.size, 'subject')} ${where}.${state.after ? ' There may be more.' : ''}`;
    say(words, text);
    announce(text);
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    state = { prefix: prefix.value, after: null, subjects: new Map() };
    look();
  });
  more.addEventListener('click', look);
  return { node, show: () => { node.hidden = false; } };
}

/// A subject, with the way to its page where all of it is known: a hash leads to nobody.
function entry(subject) {
  const values = Object.entries(subject);
  const text = values.map(([name, value]) => (value === null ? name : `${name}=${value}`)).join(', ');
  const isKnown = values.every(([, value]) => value !== null && !value.startsWith('#'));
  return isKnown ? element('a', { href: `#/subject?${new URLSearchParams(values)}` }, text) : text;
}
