// What ratelimit-header-parser reads of the answer to one request, as JSON.

import { parseRateLimit } from "ratelimit-header-parser";

const [url] = process.argv.slice(-1);

const before = Date.now();
const response = await fetch(url);
await response.text();
const { limit, used, remaining, reset } = parseRateLimit(response);
const after = Date.now();
console.log(JSON.stringify({ limit, used, remaining, reset: reset.getTime(), before, after }));
