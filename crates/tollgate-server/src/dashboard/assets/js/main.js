// The page: navigation between views, and signing in.

import { alerts, warn } from './alerts.js';
import { request, token } from './api.js';
import { element, fill, setText } from './dom.js';
import { Feed } from './feed.js';
import { showSwitches } from './switches.js';
import { limit } from './views/limit.js';
import { limits } from './views/limits.js';
import { overrides } from './views/overrides.js';
import { overview } from './views/overview.js';
import { policy } from './views/policy.js';
import { rollout } from './views/rollout.js';
import { signIn } from './views/sign-in.js';
import { subject } from './views/subject.js';
import { tenants } from './views/tenants.js';
import { top } from './views/top.js';
import { whatIf } from './views/what-if.js';

/// The views, by the first word of the address. A view with a `path` is hidden if this node does not
/// serve that path.
const VIEWS = [
  { route: '', label: 'Overview', open: overview },
  { route: 'limits', label: 'Limits', open: (context, rest) => (rest.length ? limit : limits)(context, rest) },
  { route: 'subject', label: 'Subject', open: subject },
  { route: 'top', label: 'Top subjects', open: top, path: '/v1/top' },
  { route: 'overrides', label: 'Overrides', open: overrides, path: '/v1/overrides' },
  { route: 'tenants', label: 'Tenants', open: tenants, path: '/v1/tenants' },
  { route: 'policy', label: 'Policy', open: policy },
  { route: 'what-if', label: 'What if', open: whatIf },
  { route: 'rollout', label: 'Rollout', open: rollout },
];

const content = document.getElementById('content');
const menu = document.getElementById('menu');
const feed = new Feed();
const missing = new Set();
let shown = null;

/// Shows the view of the current address.
function show() {
  close();
  const [route, ...rest] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/').map(unescaped);
  const view = VIEWS.find((one) => one.route === route && !missing.has(one.route)) ?? VIEWS[0];
  for (const link of document.querySelectorAll('#views a')) {
    if (link.getAttribute('href') === `#/${view.route}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  open(view.open({ feed, refuse }, rest), view.label);
}

function open(opened, label) {
  shown = opened;
  shown.label = opened.title ?? label;
  updateTitle();
  foldMenu(true);
  fill(content, opened.node);
  if (!opened.update) return;
  shown.deaf = feed.listen(() => feed.status && opened.update(feed));
  if (feed.status) opened.update(feed);
}

/// Sets the title of the page: a mark if something is down, the view, and the node.
function updateTitle() {
  const isDown = alerts(feed).some(({ kind }) => kind === 'bad');
  const parts = [shown?.label, feed.status?.node, 'Tollgate'].filter(Boolean);
  document.title = `${parts.join(' · ')}${isDown ? ' ⚠' : ''}`;
}

/// Folds or unfolds the menu of a narrow screen.
function foldMenu(isFolded) {
  menu.setAttribute('aria-expanded', String(!isFolded));
  document.body.classList.toggle('unfolded', !isFolded);
}

function close() {
  shown?.deaf?.();
  shown?.close?.();
  shown = null;
}

/// Shows the sign-in form, because a response requires a token.
function refuse(reason) {
  feed.stop();
  close();
  document.getElementById('leave').hidden = true;
  menu.hidden = true;
  fill(document.getElementById('views'));
  open(signIn(reason, start), 'Token');
  content.querySelector('input')?.focus();
}

/// Decodes a part of the address. An address that was typed by hand may be invalid.
function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function draw() {
  const links = VIEWS.filter(({ route }) => !missing.has(route))
    .map(({ route, label }) => element('li', {}, element('a', { href: `#/${route}` }, label)));
  fill(document.getElementById('views'), element('ul', {}, links));
  menu.hidden = false;
}

/// Starts with the stored token, or without one.
async function start() {
  try {
    const { paths } = await request('openapi.json');
    for (const { route, path } of VIEWS) {
      if (path && !(path in paths)) missing.add(route);
    }
    await request('v1/status');
  } catch (problem) {
    if (problem.status === 401) return refuse(token.read() ? problem.message : null);
  }
  document.getElementById('leave').hidden = !token.read();
  draw();
  show();
  await feed.run();
}

feed.listen(() => {
  const { problem } = feed;
  if (problem?.status === 401) return refuse(problem.message);
  const state = document.getElementById('state');
  state.classList.toggle('bad', Boolean(problem));
  setText(state, problem ? problem.message : `policy ${feed.status.policy}`);
  const all = alerts(feed);
  warn(document.getElementById('alerts'), all);
  if (feed.status) setText(document.getElementById('node'), feed.status.node);
  document.getElementById('dot').className = `dot ${all[0]?.kind ?? 'good'}`;
  updateTitle();
  if (feed.status) showSwitches(document.getElementById('switches'), feed.status.switches ?? []);
});

window.addEventListener('hashchange', () => {
  // The skip link is not a view.
  if (location.hash === '#content') return;
  if (!document.querySelector('#views a')) return;
  show();
  const heading = content.querySelector('h1');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus();
  window.scrollTo(0, 0);
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && feed.timer) feed.run();
});
menu.addEventListener('click', () => foldMenu(menu.getAttribute('aria-expanded') === 'true'));
document.getElementById('views').addEventListener('click', (event) => event.target.closest('a') && foldMenu(true));
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !document.body.classList.contains('unfolded')) return;
  foldMenu(true);
  menu.focus();
});
document.getElementById('leave').addEventListener('click', () => {
  token.forget();
  refuse(null);
});
start();
