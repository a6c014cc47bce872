// The node's metrics and status, read every two seconds.

import { request, requestText } from './api.js';
import { parse, quantile } from './metrics.js';
import { Past } from './past.js';
import { Gauge, KEPT, Series } from './series.js';
import { describeSwitch } from './switches.js';

const PERIOD = 2_000;
const DEGRADED = new Set(['fallback', 'failure']);
/// The most events that are kept.
const MOST_EVENTS = 50;

/// Counters that share a chart.
class Traffic {
  /// `past` is their source in the node's history.
  constructor(past) {
    this.past = past;
    this.admitted = new Series();
    this.refused = new Series();
    this.degraded = new Series();
    this.wouldRefuse = new Series();
  }

  observe(round, counts, seconds) {
    this.admitted.observe(round, counts.admitted, seconds);
    this.refused.observe(round, counts.refused, seconds);
    this.degraded.observe(round, counts.degraded, seconds);
    this.wouldRefuse.observe(round, counts.wouldRefuse, seconds);
  }
}

/// The percentiles of the decisions of all listeners.
class Latency {
  constructor() {
    this.past = 'latency';
    this.p50 = new Gauge();
    this.p99 = new Gauge();
    this.buckets = null;
  }

  observe(round, buckets) {
    const old = this.buckets ?? buckets;
    const since = buckets.map(([bound, count], index) => [bound, count - (old[index]?.[1] ?? 0)]);
    const value = (share) => quantile(since, share) ?? NaN;
    this.p50.set(round, value(0.5));
    this.p99.set(round, value(0.99));
    this.buckets = buckets;
  }
}

/// The durations of one name: the whole histogram, and the percentiles since the previous sample.
class Durations {
  observe(buckets) {
    const old = this.buckets ?? buckets.map(([bound]) => [bound, 0]);
    const since = buckets.map(([bound, count], index) => [bound, count - (old[index]?.[1] ?? 0)]);
    // Without requests in these two seconds, the previous percentiles stay.
    if (since.at(-1)[1] > 0) {
      this.p50 = quantile(since, 0.5);
      this.p99 = quantile(since, 0.99);
    }
    this.buckets = buckets;
  }
}

/// Samples the node periodically and calls its listeners.
export class Feed {
  constructor() {
    this.round = -1;
    this.times = new Float64Array(KEPT).fill(NaN);
    this.all = new Traffic('requests');
    this.latency = new Latency();
    this.past = new Past();
    this.limits = new Map();
    this.trials = new Map();
    /// The network listeners of the node by name. `listeners` are the callbacks of this feed.
    this.serving = new Map();
    this.shards = new Map();
    this.status = null;
    this.problem = null;
    this.events = [];
    this.listeners = new Set();
    this.timer = null;
  }

  /// Calls `listener` after each sample. Returns a function that removes it.
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /// Samples now and then periodically. A hidden page does not sample.
  async run() {
    clearTimeout(this.timer);
    if (!document.hidden) await this.observe();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PERIOD);
  }

  /// Stops sampling.
  stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  async observe() {
    try {
      const [page, status] = await Promise.all([requestText('metrics'), request('v1/status'), this.past.refresh(Date.now())]);
      this.take(parse(page), status, Date.now());
      this.problem = null;
    } catch (problem) {
      this.problem = problem;
    }
    for (const listener of this.listeners) listener(this);
  }

  take(families, status, at) {
    const before = this.round < 0 ? NaN : this.times[this.round % KEPT];
    const seconds = (at - before) / 1000;
    this.round += 1;
    this.times[this.round % KEPT] = at;
    this.all.observe(this.round, totals(families), seconds);
    this.trials = trials(families);
    for (const [name, counts] of byLimit(families)) {
      if (!this.limits.has(name)) this.limits.set(name, { name, traffic: new Traffic([name]), counts });
      const limit = this.limits.get(name);
      limit.counts = counts;
      limit.traffic.observe(this.round, counts, seconds);
    }
    this.lookAtListeners(families, seconds);
    this.lookAtShards(families);
    if (this.status) this.compare(this.status, status, at);
    this.families = families;
    this.status = status;
  }

  lookAtListeners(families, seconds) {
    const all = [];
    for (const { labels: { listener }, value } of families.get('tollgate_listener_connections') ?? []) {
      if (!this.serving.has(listener)) this.serving.set(listener, { name: listener, duration: new Durations(), decisions: new Series() });
      this.serving.get(listener).connections = value;
    }
    for (const [name, buckets] of histograms(families, 'tollgate_listener_duration_seconds', (labels) => labels.listener)) {
      const listener = this.serving.get(name);
      if (!listener) continue;
      listener.decisions.observe(this.round, buckets.at(-1)[1], seconds);
      listener.duration.observe(buckets);
      buckets.forEach(([bound, value], index) => {
        all[index] ??= [bound, 0];
        all[index][1] += value;
      });
    }
    if (all.length) this.latency.observe(this.round, all);
  }

  lookAtShards(families) {
    const shards = histograms(families, 'tollgate_shard_duration_seconds', (labels) => shardName({ ...labels, name: labels.shard }));
    const servers = histograms(families, 'tollgate_memcached_duration_seconds', (labels) => shardName({ ...labels, name: labels.server }));
    for (const [name, buckets] of [...shards, ...servers]) {
      if (!this.shards.has(name)) this.shards.set(name, new Durations());
      this.shards.get(name).observe(buckets);
    }
  }

  /// Records the events between two samples: shards, servers, overrides and the policy.
  compare(old, now, at) {
    const addEvent = (text) => this.events.unshift({ at, text });
    for (const shard of now.shards ?? []) {
      const before = old.shards?.find((other) => shardName(other) === shardName(shard));
      if (!before) continue;
      const name = shardName(shard);
      if (before.primary !== shard.primary) {
        addEvent(shard.primary ? `${name}: the primary is now ${shard.primary}` : `${name}: no primary responds`);
      }
      for (const server of shard.servers) {
        const other = before.servers.find((one) => one.address === server.address);
        if (other && other.circuit_breaker !== server.circuit_breaker) {
          addEvent(`${name}: the circuit breaker of ${server.address} is ${server.circuit_breaker}`);
        }
      }
    }
    for (const server of now.servers ?? []) {
      const before = old.servers?.find((other) => shardName(other) === shardName(server));
      const is = (one) => one.connected > 0;
      if (before && is(before) !== is(server)) {
        addEvent(`${shardName(server)}: memcached ${is(server) ? 'responds again' : 'does not respond'}`);
      }
    }
    const byText = (switches) => new Map((switches ?? []).map((one) => [`${describeSwitch(one)}: ${one.reason}`, one]));
    const [was, is] = [byText(old.switches), byText(now.switches)];
    for (const [text] of is) if (!was.has(text)) addEvent(text);
    for (const [text] of was) if (!is.has(text)) addEvent(`ended: ${text}`);
    if (old.policy !== now.policy) addEvent(`policy version ${now.policy} is in force`);
    this.events.length = Math.min(this.events.length, MOST_EVENTS);
  }

  /// Returns the rounds that are kept, oldest first.
  rounds() {
    const first = Math.max(0, this.round - KEPT + 1);
    return Array.from({ length: this.round - first + 1 }, (_, index) => first + index);
  }

  time(round) {
    return this.times[round % KEPT];
  }

  /// Returns the latest value of `key` of `source`: of the last two seconds, or else of the last
  /// sample that the node remembers.
  now(source, key) {
    const live = source[key].at(this.round);
    if (!Number.isNaN(live)) return live;
    return this.past.values(source.past, key).at(-1) ?? NaN;
  }

  /// Returns [time, value] pairs of `key` of `source`, oldest first: the node's samples until this
  /// page was opened, and then those of this page.
  points(source, key, span) {
    const live = this.rounds().filter((round) => !Number.isNaN(this.time(round)));
    const first = live.length ? this.time(live[0]) : Infinity;
    const end = this.round < 0 ? Date.now() : this.time(this.round);
    const values = this.past.values(source.past, key);
    const isRecent = (at) => at >= end - span;
    const past = this.past.at.map((at, index) => [at, values[index] ?? 0]).filter(([at]) => at <= first && isRecent(at));
    const samples = live.map((round) => [this.time(round), source[key].at(round)]).filter(([at]) => isRecent(at));
    // The first sample of a page has no rate. Without a gap, the line of the past goes on.
    if (past.length && samples.length && Number.isNaN(samples[0][1])) samples.shift();
    const isFine = end - (past[0]?.[0] ?? end) <= FINE;
    return [...past, ...(isFine ? samples : averaged(samples))];
  }
}

/// The longest span that is drawn with every sample of this page.
const FINE = 300_000;
/// The interval of the node's samples. Those of this page are averaged to it in longer spans.
const COARSE = 10_000;

function averaged(samples) {
  const bins = new Map();
  for (const [at, value] of samples) {
    if (Number.isNaN(value)) continue;
    const bin = Math.floor(at / COARSE);
    const [sum, number] = bins.get(bin)?.slice(1) ?? [0, 0];
    bins.set(bin, [at, sum + value, number + 1]);
  }
  return [...bins.values()].map(([at, sum, number]) => [at, sum / number]);
}

/// Returns a shard's name, with its store if there are two: both may use the same name.
export function shardName({ side, name }) {
  return side ? `${side}/${name}` : name;
}

/// Returns the buckets of each histogram of a family, by the name that `nameOf` derives from its labels.
function histograms(families, family, nameOf) {
  const read = new Map();
  for (const { labels, value } of families.get(`${family}_bucket`) ?? []) {
    const name = nameOf(labels);
    if (!read.has(name)) read.set(name, []);
    read.get(name).push([labels.le === '+Inf' ? Infinity : Number(labels.le), value]);
  }
  return read;
}

function none() {
  return { admitted: 0, refused: 0, degraded: 0, wouldAdmit: 0, wouldRefuse: 0 };
}

function totals(families) {
  const all = none();
  for (const { labels, value } of families.get('tollgate_requests_total') ?? []) {
    all[labels.decision === 'admitted' ? 'admitted' : 'refused'] += value;
    if (DEGRADED.has(labels.source)) all.degraded += value;
  }
  return all;
}

/// Returns the numbers of requests by the decisions of a limit and of its candidate, for each limit.
function trials(families) {
  const all = new Map();
  for (const { labels: { limit, live, candidate }, value } of families.get('tollgate_candidate_decisions_total') ?? []) {
    if (!all.has(limit)) all.set(limit, {});
    all.get(limit)[`${live} ${candidate}`] = value;
  }
  return all;
}

/// Returns the numbers of requests that each limit admitted, and that it refused itself.
function byLimit(families) {
  const limits = new Map();
  const of = (name) => {
    if (!limits.has(name)) limits.set(name, none());
    return limits.get(name);
  };
  for (const { labels, value } of families.get('tollgate_decisions_total') ?? []) {
    if (labels.decision === 'admitted') of(labels.limit).admitted += value;
    if (DEGRADED.has(labels.source)) of(labels.limit).degraded += value;
  }
  for (const { labels, value } of families.get('tollgate_refusals_total') ?? []) {
    of(labels.limit).refused += value;
  }
  for (const { labels, value } of families.get('tollgate_shadow_decisions_total') ?? []) {
    of(labels.limit)[labels.decision === 'admitted' ? 'wouldAdmit' : 'wouldRefuse'] += value;
  }
  return limits;
}
