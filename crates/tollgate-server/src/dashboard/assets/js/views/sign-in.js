// The form for the token of a listener that requires one.

import { token } from '../api.js';
import { element, field, notice } from '../dom.js';

/// Creates the form. Calls `then` when a token was entered.
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
  element('h1', {}, 'This listener requires a token'),
  reason && notice('bad', reason),
  field('Token', input, 'A token of the admin listener. The browser keeps it until you close this tab.'),
  element('button', { type: 'submit' }, 'Sign in'));
  return { node: form };
}
