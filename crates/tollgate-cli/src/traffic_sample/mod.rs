//! A sample of this node's requests of the last hour, for simulations at the admin listener.
//!
//! The sample has all requests of some clients, and not some requests of all clients. All requests
//! of a client count towards its quota, so in a sample of single requests every client would be far
//! below its quota. The client of a request is the subject of the first limit that counts the
//! request. If no limit counts the request, its client is identified by the client's address.

mod recorded;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tollgate::HashKey;
use tollgate::model::policy::{Plan, Policy};
use tollgate::model::{KeyedHash, RequestAttributes, Timestamp};
use tollgate::observe::Observer;

use crate::simulate::log::{FieldMap, Format, Options};
use crate::simulate::utc::Utc;
use recorded::Recorded;

/// The most requests in the sample. If there are more requests, half of the clients leave the
/// sample.
pub(crate) const MAX_SAMPLED_REQUESTS: usize = 20_000;

/// The most bytes of the recorded requests. If the requests have more bytes, half of the clients
/// leave the sample.
pub(crate) const MAX_SAMPLED_BYTES: usize = 8 << 20;

/// The age at which a request leaves the sample.
pub(crate) const SAMPLE_PERIOD: Duration = Duration::from_secs(3_600);

/// The time after which the number of sampled clients is doubled if the sample is almost empty.
const RAISE_AFTER: Duration = Duration::from_secs(60);

/// The most bytes that are recorded of the path and query, and of the value of a header.
pub(crate) const MAX_SAMPLED_VALUE: usize = 512;

/// A sample of the requests. If sampling is off, the sample stays empty.
pub(crate) struct TrafficSample {
    /// The keyed hash function that chooses clients. Clients cannot know the key, so they cannot
    /// choose to be sampled.
    hasher: RandomState,
    /// The key of the hashes that replace credentials.
    key: HashKey,
    /// The bound that selects the sampled clients: a client is sampled if its hash is below this
    /// number. 0 means that sampling is off.
    threshold: AtomicU64,
    requests: Mutex<Requests>,
    recorded: RwLock<Arc<Recorded>>,
}

#[derive(Default)]
struct Requests {
    /// The requests in the order of their arrival.
    lines: VecDeque<Line>,
    bytes: usize,
    /// The time at which the threshold was changed last.
    changed: u64,
}

/// One recorded request.
struct Line {
    time: u64,
    /// The hash of the request's client.
    client: u64,
    /// A line of a log in JSON format, with its line feed.
    text: Box<str>,
}

/// The sample at one point in time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The requests as lines of a log.
    pub(crate) log: Bytes,
    /// The options for reading the log.
    pub(crate) options: Options,
    /// The sampled share of the clients: one client in this number.
    pub(crate) one_of: u64,
}

impl TrafficSample {
    /// Creates an empty sample for the requests under `policy`.
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            hasher: RandomState::new(),
            key: HashKey::random(),
            threshold: AtomicU64::new(u64::MAX),
            requests: Mutex::default(),
            recorded: RwLock::new(Arc::new(Recorded::of(policy))),
        }
    }

    /// Creates a sample that stays empty.
    pub(crate) fn off() -> Self {
        Self { threshold: AtomicU64::new(0), ..Self::new(&Policy::default()) }
    }

    /// Returns whether requests are sampled.
    pub(crate) fn is_on(&self) -> bool {
        self.threshold.load(Ordering::Relaxed) > 0
    }

    /// Returns the requests of the last hour.
    pub(crate) fn snapshot(&self, now: Timestamp) -> Snapshot {
        let recorded = self.recorded();
        let headers = recorded.headers.keys().map(|name| format!("header.{name}=header.{name}"));
        let settings: Vec<String> =
            headers.chain(["header.cookie=header.cookie".to_owned()]).collect();
        // The names are valid, and at most as many as the map has room for.
        let fields = FieldMap::new(settings.iter().map(String::as_str)).unwrap_or_default();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.drop_old(now.as_millis());
        let log: String = requests.lines.iter().map(|line| &*line.text).collect();
        Snapshot {
            log: log.into(),
            options: Options { fields, format: Some(Format::Json), ..Options::default() },
            one_of: u64::MAX / self.threshold.load(Ordering::Relaxed).max(1),
        }
    }

    fn recorded(&self) -> Arc<Recorded> {
        Arc::clone(&self.recorded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a request. If another thread holds the lock, the request is left out, because a request
    /// must not wait for a sample.
    fn add(&self, line: Line) {
        let Ok(mut requests) = self.requests.try_lock() else { return };
        let now = line.time;
        requests.drop_old(now);
        let threshold = self.threshold.load(Ordering::Relaxed);
        if requests.changed == 0 {
            requests.changed = now;
        }
        let is_stable = now.saturating_sub(requests.changed) > RAISE_AFTER.as_millis() as u64;
        if threshold < u64::MAX && is_stable && requests.is_nearly_empty() {
            self.threshold.store(threshold << 1 | 1, Ordering::Relaxed);
            requests.changed = now;
        }
        requests.bytes += line.text.len();
        requests.lines.push_back(line);
        while requests.is_over() {
            let threshold = self.threshold.load(Ordering::Relaxed) >> 1;
            if threshold == 0 {
                // The requests of a single client exceed the bounds, so the oldest requests are
                // dropped.
                requests.drop_first();
                continue;
            }
            self.threshold.store(threshold, Ordering::Relaxed);
            requests.retain_clients_below(threshold);
            requests.changed = now;
        }
    }
}

impl Requests {
    fn is_over(&self) -> bool {
        self.lines.len() > MAX_SAMPLED_REQUESTS || self.bytes > MAX_SAMPLED_BYTES
    }

    fn is_nearly_empty(&self) -> bool {
        self.lines.len() < MAX_SAMPLED_REQUESTS / 4 && self.bytes < MAX_SAMPLED_BYTES / 4
    }

    fn drop_old(&mut self, now: u64) {
        let end = now.saturating_sub(SAMPLE_PERIOD.as_millis() as u64);
        while self.lines.front().is_some_and(|line| line.time < end) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.text.len();
        }
    }

    fn retain_clients_below(&mut self, threshold: u64) {
        self.lines.retain(|line| line.client < threshold);
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
    }
}

impl Observer for TrafficSample {
    fn on_decision(&self, _decision: &tollgate::limiter::Decision) {}

    fn on_plan(
        &self,
        now: Timestamp,
        policy: &Policy,
        attributes: &RequestAttributes<'_>,
        plan: &Plan<'_>,
    ) {
        let threshold = self.threshold.load(Ordering::Relaxed);
        if threshold == 0 {
            return;
        }
        let client = match plan.enforced.first() {
            Some(planned) => self.hasher.hash_one(planned.subject.as_bytes()),
            None => self.hasher.hash_one(attributes.peer),
        };
        if client < threshold {
            let time = now.as_millis();
            let text = line(time, policy, attributes, &self.recorded(), &self.key);
            self.add(Line { time, client, text });
        }
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        let recorded = Arc::new(Recorded::of(policy));
        *self.recorded.write().unwrap_or_else(PoisonError::into_inner) = recorded;
    }
}

/// Returns the request as a line of a log. The line contains the parts of the request that `policy`
/// reads, with hashes in place of credentials.
fn line(
    time: u64,
    policy: &Policy,
    attributes: &RequestAttributes<'_>,
    recorded: &Recorded,
    key: &HashKey,
) -> Box<str> {
    let header = |name: &str| attributes.headers.value(name, 0).map(text);
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    set("time_iso8601", Some(Utc::new(time).to_string().into()));
    let client = policy.forwarding().client(attributes);
    set("remote_addr", client.map(|client| client.to_string().into()));
    set("request_method", Some(text(attributes.method.as_bytes()).into()));
    let target = match attributes.query {
        None => text(attributes.path.as_bytes()),
        Some(_) if recorded.is_query_secret => format!("{}?-", text(attributes.path.as_bytes())),
        Some(query) => text(format!("{}?{query}", attributes.path).as_bytes()),
    };
    set("request_uri", Some(target.into()));
    set("http_host", attributes.host.map(|host| text(host.as_bytes()).into()));
    set("http_referer", header("referer").map(Value::from));
    set("http_user_agent", header("user-agent").map(Value::from));
    let hidden = |value: &[u8]| {
        let hash = u128::from_be_bytes(KeyedHash::hash(key, value));
        format!("{hash:032x}")
    };
    for (name, is_secret) in &recorded.headers {
        let value = attributes.headers.value(name, 0);
        let value = value.map(|value| if *is_secret { hidden(value) } else { text(value) });
        set(&format!("header.{name}"), value.map(Value::from));
    }
    if !recorded.cookies.is_empty() {
        let all = header("cookie").unwrap_or_default();
        let read = all.split(';').filter_map(|pair| pair.trim().split_once('='));
        let read = read.filter_map(|(name, value)| {
            let is_secret = recorded.cookies.get(name)?;
            let value = if *is_secret { hidden(value.as_bytes()) } else { value.to_owned() };
            Some(format!("{name}={value}"))
        });
        let cookies: Vec<String> = read.collect();
        set("header.cookie", (!cookies.is_empty()).then(|| json!(cookies.join("; "))));
    }
    format!("{}\n", Value::Object(fields)).into()
}

/// Returns the first [`MAX_SAMPLED_VALUE`] bytes as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SAMPLED_VALUE)]).into_owned()
}

impl std::fmt::Debug for TrafficSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrafficSample")
    }
}

#[cfg(test)]
mod tests;
