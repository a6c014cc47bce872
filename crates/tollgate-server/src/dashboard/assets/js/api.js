// Requests to the listener that served this page.

const KEPT = 'tollgate-token';
const PATIENCE = 10_000;

/// What was answered instead of what was asked for.
export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

/// The token is kept by this tab alone and for so long as it is open. It goes out in a field that no
/// other site's page can make a browser send.
export const token = {
  read: () => sessionStorage.getItem(KEPT),
  keep: (text) => sessionStorage.setItem(KEPT, text),
  forget: () => sessionStorage.removeItem(KEPT),
};

/// Asks `path`, such as `v1/status`, and gives the document that is answered.
export async function ask(path, { method = 'GET', body, patience = PATIENCE } = {}) {
  return (await sent(path, method, body, patience)).json();
}

/// The same, for text.
export async function askText(path) {
  return (await sent(path, 'GET', undefined, PATIENCE)).text();
}

async function sent(path, method, body, patience) {
  const headers = {};
  if (token.read()) headers.authorization = `Bearer ${token.read()}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(new URL(`../${path}`, document.baseURI), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Problem(0, 'No answer', 'This node does not answer. It is asked again shortly.');
  }
  if (response.ok) return response;
  let told = {};
  try {
    told = await response.json();
  } catch {
    // Something between here and the node answered; its status is all there is.
  }
  throw new Problem(response.status, told.title ?? `Status ${response.status}`, told.detail);
}
