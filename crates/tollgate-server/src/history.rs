//! The decisions of the last hour, kept in memory as samples.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tollgate::observe::Observed;

/// The time between two samples.
pub const HISTORY_PERIOD: Duration = Duration::from_secs(10);
/// The most samples that are kept: one hour.
pub const HISTORY_SAMPLES: usize = 360;
/// The most limits that one sample contains. If more limits made decisions, the busiest ones are
/// kept.
pub const HISTORY_LIMITS: usize = 200;

/// Counters of decisions. In a [`HistoryReading`], they count since the start of the process. In a
/// sample, they count the decisions of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// The number of admitted requests.
    pub admitted: u64,
    /// The number of refused requests. For a limit, the number of requests that this limit itself
    /// refused.
    pub refused: u64,
    /// The number of decisions that were made without the store, because the store did not answer.
    pub degraded: u64,
    /// The number of requests that shadow rules, or a limit that is not enforced, would have
    /// refused.
    pub would_refuse: u64,
}

/// The counters of a node at one point in time.
#[derive(Clone, Debug)]
pub struct HistoryReading {
    /// The time of the reading, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The counts of all requests.
    pub requests: HistoryCounts,
    /// The durations of all decisions.
    pub latency: Observed,
    /// Each limit with its counts.
    pub limits: Vec<(Box<str>, HistoryCounts)>,
}

/// The decisions of the last hour: a ring of [`HISTORY_SAMPLES`] samples.
///
/// A sample has at most [`HISTORY_LIMITS`] limits, so the ring has a fixed maximum size.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    read: Box<dyn Fn() -> HistoryReading + Send + Sync>,
    ring: Mutex<Ring>,
}

struct Ring {
    last: Last,
    samples: VecDeque<Sample>,
}

/// The counters at the end of the latest sample.
struct Last {
    at_ms: u64,
    requests: HistoryCounts,
    latency: Observed,
    limits: BTreeMap<Arc<str>, HistoryCounts>,
}

/// The decisions of one interval.
#[derive(Clone, Debug)]
struct Sample {
    at_ms: u64,
    elapsed_ms: u64,
    requests: HistoryCounts,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    limits: Vec<(Arc<str>, HistoryCounts)>,
}

/// The decisions of the last hour. Every array has one value for each sample, oldest first.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct HistoryResponse {
    /// The milliseconds between two samples. The last sample may be shorter.
    period_ms: u64,
    /// The end of each sample in milliseconds since the Unix epoch.
    at_ms: Vec<u64>,
    /// The duration of each sample in milliseconds.
    elapsed_ms: Vec<u64>,
    /// The numbers of requests of all listeners together.
    requests: CountsText,
    /// The durations of the decisions.
    latency: LatencyText,
    /// The requests of each limit that decided, by name. A sample has at most 200 limits.
    limits: BTreeMap<Arc<str>, CountsText>,
}

/// The numbers of requests in each sample.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "HistoryCounts")]
struct CountsText {
    /// Admitted requests.
    admitted: Vec<u64>,
    /// Refused requests. For a limit: requests that the limit itself refused.
    refused: Vec<u64>,
    /// Decisions that the store did not make. Each of them is also counted as admitted or refused.
    degraded: Vec<u64>,
    /// Requests that shadow rules, or a limit that is not enforced, would have refused.
    would_refuse: Vec<u64>,
}

/// The percentiles of durations in each sample, in microseconds; `null` without decisions.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "HistoryLatency")]
struct LatencyText {
    /// The median.
    p50_us: Vec<Option<u64>>,
    /// The 99th percentile.
    p99_us: Vec<Option<u64>>,
}

impl HistoryCounts {
    fn since(self, earlier: Self) -> Self {
        Self {
            admitted: self.admitted.saturating_sub(earlier.admitted),
            refused: self.refused.saturating_sub(earlier.refused),
            degraded: self.degraded.saturating_sub(earlier.degraded),
            would_refuse: self.would_refuse.saturating_sub(earlier.would_refuse),
        }
    }

    const fn all(self) -> u64 {
        self.admitted.saturating_add(self.refused).saturating_add(self.would_refuse)
    }
}

impl History {
    /// Creates a history of the counters that `read` returns. The counters are zero at
    /// `started_ms`, in milliseconds since the Unix epoch. `read` must not block.
    pub fn new(started_ms: u64, read: impl Fn() -> HistoryReading + Send + Sync + 'static) -> Self {
        let last = Last {
            at_ms: started_ms,
            requests: HistoryCounts::default(),
            latency: Observed::NOTHING,
            limits: BTreeMap::new(),
        };
        let ring = Mutex::new(Ring { last, samples: VecDeque::new() });
        Self(Arc::new(Inner { read: Box::new(read), ring }))
    }

    /// Takes a sample every [`HISTORY_PERIOD`]. The future never ends.
    pub async fn keep(self) {
        let mut turns = tokio::time::interval(HISTORY_PERIOD);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // The first tick of the timer comes immediately.
        turns.tick().await;
        loop {
            turns.tick().await;
            self.sample();
        }
    }

    /// Adds a sample of the decisions since the previous sample. If the ring is full, the new
    /// sample replaces the oldest.
    pub fn sample(&self) {
        let reading = (self.0.read)();
        let mut ring = self.0.ring.lock();
        let sample = ring.last.sample(&reading);
        if ring.samples.len() == HISTORY_SAMPLES {
            ring.samples.pop_front();
        }
        ring.samples.push_back(sample);
        ring.last.set(reading);
    }

    /// Returns all samples. The decisions since the latest sample are added as one more, shorter
    /// sample.
    pub(crate) fn response(&self) -> HistoryResponse {
        let reading = (self.0.read)();
        let ring = self.0.ring.lock();
        let newest = ring.last.sample(&reading);
        let period_ms = u64::try_from(HISTORY_PERIOD.as_millis()).unwrap_or(u64::MAX);
        let mut response = HistoryResponse { period_ms, ..HistoryResponse::default() };
        for (index, sample) in ring.samples.iter().chain([&newest]).enumerate() {
            response.add(index, sample);
        }
        let samples = response.at_ms.len();
        response.limits.values_mut().for_each(|counts| counts.extend(samples));
        response
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.0.ring.lock().samples.len();
        f.debug_struct("History").field("samples", &samples).finish_non_exhaustive()
    }
}

impl Last {
    /// Returns a sample of the decisions that were counted after these counters and before
    /// `reading`.
    fn sample(&self, reading: &HistoryReading) -> Sample {
        let latency = reading.latency.since(&self.latency);
        let limits = reading.limits.iter().filter_map(|(name, counts)| {
            let known = self.limits.get_key_value(&**name);
            let (name, before) = known.map_or_else(
                || (Arc::from(&**name), None),
                |(name, it)| (Arc::clone(name), Some(*it)),
            );
            let counts = counts.since(before.unwrap_or_default());
            (counts != HistoryCounts::default()).then_some((name, counts))
        });
        let mut limits: Vec<_> = limits.collect();
        if limits.len() > HISTORY_LIMITS {
            limits.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.all()));
            limits.truncate(HISTORY_LIMITS);
        }
        limits.shrink_to_fit();
        Sample {
            at_ms: reading.at_ms,
            elapsed_ms: reading.at_ms.saturating_sub(self.at_ms),
            requests: reading.requests.since(self.requests),
            p50_us: latency.percentile(50),
            p99_us: latency.percentile(99),
            limits,
        }
    }

    /// Replaces the counters by those of `reading`. The name of a limit that the previous counters
    /// contain is shared and not copied again.
    fn set(&mut self, reading: HistoryReading) {
        let HistoryReading { at_ms, requests, latency, limits } = reading;
        let known = std::mem::take(&mut self.limits);
        let named = |(name, counts): (Box<str>, HistoryCounts)| {
            let name =
                known.get_key_value(&*name).map_or_else(|| name.into(), |(it, _)| Arc::clone(it));
            (name, counts)
        };
        *self = Self { at_ms, requests, latency, limits: limits.into_iter().map(named).collect() };
    }
}

impl HistoryResponse {
    /// Appends the values of `sample`, which has the position `index` in the arrays of the
    /// response.
    fn add(&mut self, index: usize, sample: &Sample) {
        self.at_ms.push(sample.at_ms);
        self.elapsed_ms.push(sample.elapsed_ms);
        self.requests.push(sample.requests);
        self.latency.p50_us.push(sample.p50_us);
        self.latency.p99_us.push(sample.p99_us);
        for (name, counts) in &sample.limits {
            let limit = self.limits.entry(Arc::clone(name)).or_default();
            limit.extend(index);
            limit.push(*counts);
        }
    }
}

impl CountsText {
    fn push(&mut self, counts: HistoryCounts) {
        self.admitted.push(counts.admitted);
        self.refused.push(counts.refused);
        self.degraded.push(counts.degraded);
        self.would_refuse.push(counts.would_refuse);
    }

    /// Appends zeros until each list has `samples` values.
    fn extend(&mut self, samples: usize) {
        for values in
            [&mut self.admitted, &mut self.refused, &mut self.degraded, &mut self.would_refuse]
        {
            values.resize(samples, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::{Value, json};

    use super::*;

    /// Returns a history of `limits` limits, each of which admits one request a second.
    fn history(limits: u64) -> (Arc<AtomicU64>, History) {
        let second = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&second);
        let history = History::new(0, move || {
            let now = now.load(Ordering::Relaxed);
            let counts = |admitted| HistoryCounts { admitted, ..HistoryCounts::default() };
            HistoryReading {
                at_ms: now * 1_000,
                requests: counts(now),
                latency: Observed::NOTHING,
                limits: (0..limits)
                    .map(|index| (format!("limit-{index}").into(), counts(now * (index + 1))))
                    .collect(),
            }
        });
        (second, history)
    }

    fn response(history: &History) -> Value {
        serde_json::to_value(history.response()).unwrap()
    }

    #[test]
    fn the_newest_sample_is_the_time_since_the_one_before_it() {
        let (second, history) = history(1);
        second.store(10, Ordering::Relaxed);
        history.sample();
        second.store(13, Ordering::Relaxed);
        let response = response(&history);
        assert_eq!(response["at_ms"], json!([10_000, 13_000]));
        assert_eq!(response["elapsed_ms"], json!([10_000, 3_000]));
        assert_eq!(response["requests"]["admitted"], json!([10, 3]));
        assert_eq!(response["limits"]["limit-0"]["admitted"], json!([10, 3]));
        assert_eq!(response["latency"]["p99_us"], json!([null, null]));
    }

    #[test]
    fn limits_without_decisions_have_zeros() {
        let (second, history) = history(1);
        history.sample();
        second.store(20, Ordering::Relaxed);
        history.sample();
        assert_eq!(response(&history)["limits"]["limit-0"]["admitted"], json!([0, 20, 0]));
    }

    #[test]
    fn the_ring_keeps_an_hour_and_the_busiest_limits() {
        let (second, history) = history(300);
        for turn in 1..=400 {
            second.store(turn * 10, Ordering::Relaxed);
            history.sample();
        }
        let response = response(&history);
        let samples = response["at_ms"].as_array().unwrap();
        // The last value is for the time since the latest sample.
        assert_eq!(samples.len(), HISTORY_SAMPLES + 1);
        assert_eq!(samples[0], json!(410_000));
        let limits = response["limits"].as_object().unwrap();
        assert_eq!(limits.len(), HISTORY_LIMITS);
        assert!(limits.contains_key("limit-299") && !limits.contains_key("limit-0"));
    }
}
