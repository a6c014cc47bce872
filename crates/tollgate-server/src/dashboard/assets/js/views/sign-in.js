// Who opens a door that asks for a token types it here.

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
  element('h1', {}, 'This door asks for a token'),
  reason && notice('bad', reason),
  field('Token', input, 'One of the tokens of the door for administrators. This tab keeps it until it is closed.'),
  element('button', { type: 'submit' }, 'Open'));
  return { node: form };
}
