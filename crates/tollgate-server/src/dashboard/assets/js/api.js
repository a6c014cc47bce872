// Requests to the listener that served this page.

const TOKEN_KEY = 'tollgate-token';
const TIMEOUT_MS = 10_000;

/// The error of a request.
export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

/// The token, stored by this tab while it is open. It is sent in a header field that a page of another
/// site cannot make a browser send.
export const token = {
  read: () => sessionStorage.getItem(TOKEN_KEY),
  keep: (text) => sessionStorage.setItem(TOKEN_KEY, text),
  forget: () => sessionStorage.removeItem(TOKEN_KEY),
};

/// Sends a request to `path`, such as `v1/status`, and returns the document of the response.
export async function request(path, { method = 'GET', body, timeout = TIMEOUT_MS } = {}) {
  return (await sent(path, method, body, timeout)).json();
}

/// Sends a request to `path`, and returns the text of the response.
export async function requestText(path) {
  return (await sent(path, 'GET', undefined, TIMEOUT_MS)).text();
}

async function sent(path, method, body, timeout) {
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
      signal: AbortSignal.timeout(timeout),
    });
  } catch {
    throw new Problem(0, 'No response', 'This node does not respond. Retrying.');
  }
  if (response.ok) return response;
  let details = {};
  try {
    details = await response.json();
  } catch {
    // The response is not from the node but from a proxy in between: it has only a status.
  }
  throw new Problem(response.status, details.title ?? `Status ${response.status}`, details.detail);
}
