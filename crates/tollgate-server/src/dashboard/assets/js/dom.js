// Elements, made without markup: whatever is a string becomes text.

const SVG = 'http://www.w3.org/2000/svg';

/// An element with `attributes` and `children`. What begins with `on` is a listener; `true` is an
/// attribute without a value, and `false`, `null` and `undefined` are none.
export function element(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/// The same, in a drawing.
export function shape(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...flat(children));
  return node;
}

/// Puts `children` in the place of what `node` holds.
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/// Says `text`, if that is not what is said already: nothing is redrawn, and nobody loses the focus.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/// Tells screen readers what happened.
export function announce(text) {
  say(document.getElementById('announcer'), text);
}

/// A box that tells of something: `kind` is `good`, `bad` or `calm`.
export function notice(kind, ...children) {
  return element('div', { class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : null }, ...children);
}

/// A field of a form, with its label and a hint.
export function field(label, input, hint) {
  const id = `field-${field.next++}`;
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return element('div', { class: 'field' },
    element('label', { for: id }, label), input,
    hint && element('p', { class: 'hint', id: `${id}-hint` }, hint));
}
field.next = 1;
