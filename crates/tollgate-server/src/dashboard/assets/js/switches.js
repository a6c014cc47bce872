// The active kill switches, shown above every view.

import { element, fill } from './dom.js';
import { sheddingName, until } from './override.js';

const EFFECTS = {
  limit: { unlimited: 'is off', counted: 'counts and never refuses', blocked: 'refuses every request', quota: 'has another quota' },
  rule: { unlimited: 'is off', counted: 'counts and never refuses' },
  shedding: { unlimited: 'is off', counted: 'counts and never refuses' },
};

/// Describes a kill switch.
export function describeSwitch({ kind, name, effect }) {
  return `${subject(kind, name)} ${EFFECTS[kind]?.[effect] ?? effect}`;
}

function subject(kind, name) {
  if (kind === 'shedding') {
    const text = sheddingName(name);
    return text[0].toUpperCase() + text.slice(1);
  }
  if (kind === 'rule') return `Rule ${name}`;
  return name === null ? 'Every limit' : `Limit ${name}`;
}

/// Shows `switches` in `container`, if they have changed.
export function showSwitches(container, switches) {
  const seen = JSON.stringify(switches);
  if (container.dataset.seen === seen) return;
  container.dataset.seen = seen;
  container.hidden = !switches.length;
  fill(container, switches.length > 0 && element('ul', {}, switches.map((one) => element('li', {},
    element('strong', {}, describeSwitch(one)), ` ${until(one)}: ${one.reason} `))),
  switches.length > 0 && element('a', { href: '#/overrides' }, 'Overrides'));
}
