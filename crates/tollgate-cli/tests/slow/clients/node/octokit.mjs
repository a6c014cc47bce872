// octokit with its throttling plugin, at the API that the first argument names; the second says what
// it does there. Prints what it met as JSON.

import { Octokit } from "@octokit/core";
import { throttling } from "@octokit/plugin-throttling";

const [baseUrl, scenario, auth] = process.argv.slice(-3);

// Far more than any scenario needs until it is told to wait.
const MOST_REQUESTS = 200;

const waits = [];
const told = (kind) => (seconds, options, octokit, retries) => {
  waits.push({ kind, seconds, retries });
  return scenario === "recover";
};

const octokit = new (Octokit.plugin(throttling))({
  auth: auth || undefined,
  baseUrl,
  log: { debug() {}, info() {}, warn() {}, error: console.error },
  throttle: { onRateLimit: told("primary"), onSecondaryRateLimit: told("secondary") },
});

const scenarios = {
  // Asks one after another until it had to wait once. The request that waited is the last.
  async recover() {
    const answers = [];
    while (waits.length === 0 && answers.length < MOST_REQUESTS) {
      answers.push(seen(await octokit.request("GET /user")));
    }
    return { answers };
  },

  // Asks for more at once than the limit holds, and takes no for an answer.
  async exhaust() {
    const asked = Array.from({ length: 70 }, () => octokit.request("GET /users/octocat"));
    const settled = await Promise.allSettled(asked);
    return { answers: settled.map(({ value, reason }) => seen(value ?? failure(reason))) };
  },

  // One of each kind, and what it knows already.
  async kinds() {
    const first = await octokit.request("GET /user");
    const headers = { "if-none-match": first.headers.etag };
    const again = await octokit.request("GET /user", { headers }).catch(failure);
    const found = await octokit.request("GET /search/issues", { q: "is:open" });
    const opened = await octokit.request("POST /repos/octocat/hello/issues", { title: "hello" });
    const standing = await octokit.request("GET /rate_limit");
    return { answers: [first, again, found, opened].map(seen), standing: standing.data };
  },
};

function failure(error) {
  if (error.response === undefined) throw error;
  return { ...error.response, message: error.message };
}

function seen({ status, headers, message }) {
  return { status, headers, message };
}

console.log(JSON.stringify({ waits, ...(await scenarios[scenario]()) }));
