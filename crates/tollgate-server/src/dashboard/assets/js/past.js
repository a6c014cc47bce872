// The decisions of the last hour, which the node remembers.

import { request } from './api.js';

/// The time between two requests. The samples since then come from the feed.
const PERIOD = 60_000;
/// The shortest sample with a meaningful rate.
const SHORTEST = 1_000;

/// Samples of ten seconds, oldest first.
export class Past {
  constructor() {
    this.at = [];
    this.requests = null;
    this.latency = null;
    this.limits = {};
    this.requestedAt = 0;
    /// Whether the node serves a history.
    this.isServed = true;
  }

  /// Reads the samples, if those here are old.
  async refresh(now) {
    if (!this.isServed || now - this.requestedAt < PERIOD) return;
    this.requestedAt = now;
    try {
      this.take(await request('v1/history'));
    } catch (problem) {
      if (problem.status === 404) this.isServed = false;
    }
  }

  take({ at_ms: at, elapsed_ms: elapsed, requests, latency, limits }) {
    const last = elapsed.length - 1;
    const kept = elapsed.map((span, index) => index < last || span >= SHORTEST || last === 0);
    const rates = (counts) => counts.map((value, index) => (1000 * value) / Math.max(elapsed[index], 1)).filter((_, index) => kept[index]);
    const traffic = ({ admitted, refused, degraded, would_refuse: wouldRefuse }) => ({
      admitted: rates(admitted), refused: rates(refused), degraded: rates(degraded), wouldRefuse: rates(wouldRefuse),
    });
    const seconds = (values) => values.filter((_, index) => kept[index]).map((value) => (value === null ? NaN : value / 1_000_000));
    this.at = at.filter((_, index) => kept[index]);
    this.requests = traffic(requests);
    this.latency = { p50: seconds(latency.p50_us), p99: seconds(latency.p99_us) };
    this.limits = Object.fromEntries(Object.entries(limits).map(([name, counts]) => [name, traffic(counts)]));
  }

  /// Returns the samples of `key` of a source: a limit's name in a list, `requests` or `latency`.
  values(source, key) {
    const found = Array.isArray(source) ? (Object.hasOwn(this.limits, source[0]) ? this.limits[source[0]] : null) : this[source];
    return found?.[key] ?? [];
  }
}
