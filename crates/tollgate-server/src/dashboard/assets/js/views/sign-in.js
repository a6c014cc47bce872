// The form for the token of a listener that requires one.

import { token } from '../api.js';
import { element, field, notice } from '../dom.js';

/// Asks for a token; calls `then` when one was given.
export function signIn(reason, then) {
  const input = element('input', {
    type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, class: 'wide',
  });
  const form = element('form', {
    class: 'card small',
    onsubmit: (event) => {
      event.preventDefault();
      token.keep(input.value.trim());
      then();
    },
  },
  element('h1', {}, 'This listener asks for a token'),
  reason && notice('bad', reason),
  field('Token', input, 'A token of the admin listener. This tab keeps it until you close the tab.'),
  element('button', { type: 'submit' }, 'Open'));
  return { node: form };
}
