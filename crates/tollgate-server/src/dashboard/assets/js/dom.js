// Elements, created without markup: every string becomes text.

const SVG = 'http://www.w3.org/2000/svg';

/// Creates an element with `attributes` and `children`. A function is an event listener, with a name
/// that starts with `on`. `true` is an attribute without a value; `false`, `null` and `undefined` set
/// no attribute.
export function element(tag, attributes = {}, ...children) {
  return setAttributes(document.createElement(tag), attributes, children);
}

/// Creates an SVG element.
export function shape(tag, attributes = {}, ...children) {
  return setAttributes(document.createElementNS(SVG, tag), attributes, children);
}

function setAttributes(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...flat(children));
  return node;
}

/// Replaces the content of `node` by `children`.
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/// Sets the text of `node` if it differs, so nothing is redrawn and the focus stays.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/// Announces `text` to screen readers.
export function announce(text) {
  setText(document.getElementById('announcer'), text);
}

/// Creates a message box. `kind` is `good`, `bad` or `calm`.
export function notice(kind, ...children) {
  return element('div', { class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : null }, ...children);
}

/// Creates a field of a form, with its label and a hint.
export function field(label, input, hint) {
  const id = `field-${field.next++}`;
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return element('div', { class: 'field' },
    element('label', { for: id }, label), input,
    hint && element('p', { class: 'hint', id: `${id}-hint` }, hint));
}
field.next = 1;
