// The subjects of a limit, if its policy reveals them.

import { request } from '../api.js';
import { announce, element, field, fill, notice, setText } from '../dom.js';
import { many } from '../format.js';

/// The most subjects that are shown. A longer prefix finds the others.
const MOST = 500;
/// The pages that are loaded at a time. Each scans a bounded part of the store.
const PAGES = 10;

/// Creates a card that lists subjects of `limit`. It is hidden until `show` is called.
export function listing(limit, { refuse }) {
  const prefix = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false' });
  const description = element('p', { class: 'words' }, 'Enter the start of a value to list the subjects that match, or nothing to list all subjects.');
  const found = element('ul', { class: 'plain' });
  const errorBox = element('div');
  const more = element('button', { type: 'button', hidden: true }, 'Show more');
  const form = element('form', { class: 'row' }, field('Prefix', prefix), element('button', { type: 'submit' }, 'List'));
  const node = element('section', { class: 'card', 'aria-label': 'Subjects', hidden: true },
    element('h2', {}, 'Subjects'), form, description, errorBox, found, more);
  let requests = 0;
  let state = { prefix: '', after: null, subjects: new Map() };
  const refresh = async () => {
    requests += 1;
    const mine = requests;
    fill(errorBox);
    try {
      let response;
      for (let page = 0; page < PAGES; page += 1) {
        const query = new URLSearchParams({ limit, prefix: state.prefix, ...(state.after && { after: state.after }) });
        response = await request(`v1/subjects?${query}`);
        // A newer request was sent: its response is the one to show.
        if (mine !== requests) return;
        for (const subject of response.subjects) state.subjects.set(JSON.stringify(subject), subject);
        state.after = response.next;
        if (!response.next || state.subjects.size >= MOST) break;
      }
      show(response.source);
    } catch (problem) {
      if (problem.status === 401) return refuse(problem.message);
      fill(errorBox, notice('bad', problem.message));
    }
  };
  const show = (source) => {
    const all = [...state.subjects.values()].slice(0, MOST);
    fill(found, all.map((subject) => element('li', {}, entry(subject))));
    more.hidden = !state.after || state.subjects.size >= MOST;
    const where = source === 'store' ? 'in the store' : 'from recent decisions of this node (the store keeps only hashes)';
    const text = `${many(state.subjects.size, 'subject')} ${where}.${state.after ? ' There may be more.' : ''}`;
    setText(description, text);
    announce(text);
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    state = { prefix: prefix.value, after: null, subjects: new Map() };
    refresh();
  });
  more.addEventListener('click', refresh);
  return { node, show: () => { node.hidden = false; } };
}

/// Shows a subject, with a link to its page if all values are known: hashes cannot be looked up.
function entry(subject) {
  const values = Object.entries(subject);
  const text = values.map(([name, value]) => (value === null ? name : `${name}=${value}`)).join(', ');
  const isKnown = values.every(([, value]) => value !== null && !value.startsWith('#'));
  return isKnown ? element('a', { href: `#/subject?${new URLSearchParams(values)}` }, text) : text;
}
