//! Redis as the store of a limiter that is built in code.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::model::Policy;
use tollgate::{Clock, CounterClock, HashKey, OpenStore};
use tollgate_policy::{
    DecisionClock, DenyCacheMode, MIN_REDIS_DEADLINE, ReadFrom, RedisSettings, SentinelAccess,
    Settings, ShardSettings, StepForm, StoreSettings, TlsFiles, Topology,
};

use crate::backend::Backend;
use crate::settings::{OpenError, Refunds};

/// The time within which the servers must answer, unless [`Redis::deadline`] sets another time.
pub const REDIS_DEADLINE: Duration = Duration::from_millis(15);

/// Redis or Valkey as the store of a [builder](tollgate::RequestLimiterBuilder): one server, or
/// several servers over which the subjects are distributed.
///
/// A server that does not answer is not an error. Until the server answers again, this node decides
/// with its share of each limit: see [`nodes`](Self::nodes). If this node's clock differs too much
/// from the clock of a server, the server's clock decides. This store needs a Tokio runtime, and a
/// [hash key](tollgate::RequestLimiterBuilder::hash_key) that is the same on every node.
///
/// ```no_run
/// use http::request::Parts;
/// use tollgate::{HashKey, Precision, Quota, RateLimiter, Rule};
/// use tollgate_backend::Redis;
///
/// #[derive(Clone)]
/// struct UserId(u64);
///
/// let secret = std::env::var("TOLLGATE_SECRET")?;
/// let limiter = RateLimiter::builder()
///     .subject("user", |parts: &Parts| parts.extensions.get::<UserId>().map(|id| id.0.to_string()))
///     .limit("burst", Quota::per_second(10).burst(20).per("user"))
///     .limit("hourly", Quota::per_hour(1_000).sliding(Precision::minutes(1)).per(["user", "ip"]))
///     .rule(Rule::path("/search/**").limits(["burst"]).cost(5))
///     .store(Redis::connect(["redis://a", "redis://b"]).nodes(3u32.try_into()?))
///     .hash_key(HashKey::from_secret(secret.as_bytes()))
///     .build()?;
/// # let _ = limiter;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "Redis is not connected until a limiter is built with it"]
pub struct Redis {
    urls: Vec<String>,
    deadline: Duration,
    nodes: NonZeroU32,
}

impl Redis {
    /// Creates a store that keeps counters in the servers at `urls`, such as
    /// `redis://10.0.0.1:6379` or `rediss://…` for TLS. Every node must name the same servers, in
    /// any order.
    pub fn connect<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        Self { urls, deadline: REDIS_DEADLINE, nodes: NonZeroU32::MIN }
    }

    /// Sets the time within which the servers must answer. The least is [`MIN_REDIS_DEADLINE`].
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Sets the number of nodes that share the limits; the default is 1. While the servers do not
    /// answer, each node admits its share of every quota, which is the quota divided by this
    /// number. With the default, each node then admits the whole quota.
    pub fn nodes(self, nodes: NonZeroU32) -> Self {
        Self { nodes, ..self }
    }

    fn settings(self) -> RedisSettings {
        let shard = |url: String| ShardSettings {
            name: shard_name(&url).into(),
            topology: Topology::Static { primary: url.into(), replicas: Vec::new() },
            weight: NonZeroU32::MIN,
        };
        RedisSettings {
            shards: self.urls.into_iter().map(shard).collect(),
            route_by: None,
            previous: None,
            deadline: self.deadline,
            nodes: self.nodes,
            clock: DecisionClock::default(),
            reads: ReadFrom::default(),
            remember_refusals: DenyCacheMode::Enabled,
            step: StepForm::default(),
            user: None,
            password: None,
            tls: TlsFiles::default(),
            sentinel: SentinelAccess::default(),
            revealed: Vec::new(),
        }
    }
}

/// Returns the text of a URL that identifies its server, without the scheme and without
/// credentials.
fn shard_name(url: &str) -> &str {
    let server = url.split_once("://").map_or(url, |(_, server)| server);
    server.rsplit_once('@').map_or(server, |(_, server)| server).trim_end_matches('/')
}

impl OpenStore for Redis {
    type Store = Backend;
    type Error = OpenError;

    const IS_SHARED: bool = true;

    fn open(self, policy: &Policy, key: &HashKey) -> Result<Backend, OpenError> {
        if self.deadline < MIN_REDIS_DEADLINE {
            return Err(OpenError::Deadline(self.deadline));
        }
        let store = StoreSettings::Redis(Box::new(self.settings()));
        let settings = Settings { store, ..Settings::default() };
        Backend::open(&settings, key.clone(), policy, Refunds::ByResponses)
    }

    fn clock(store: &Backend) -> Option<Arc<dyn Clock>> {
        Some(store.clock(CounterClock::new()))
    }
}

/// The debug output omits the URLs, because they may contain passwords.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards: Vec<_> = self.urls.iter().map(|url| shard_name(url)).collect();
        f.debug_struct("Redis").field("shards", &shards).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_named_by_its_server_alone() {
        for (url, name) in [
            ("redis://a", "a"),
            ("rediss://user:p@ss@10.0.0.1:6379/", "10.0.0.1:6379"),
            ("a:6379", "a:6379"),
        ] {
            assert_eq!(shard_name(url), name);
        }
        let redis = Redis::connect(["redis://user:secret@a"]);
        assert!(!format!("{redis:?}").contains("secret"));
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_named() {
        let error = tollgate::RateLimiter::builder()
            .limit("burst", tollgate::Quota::per_second(1))
            .store(Redis::connect(["http://a"]))
            .hash_key(key())
            .build()
            .unwrap_err();
        assert!(error.to_string().starts_with("store: "), "{error}");
    }

    /// The bug: a limiter with such a deadline never used Redis, and each node decided alone.
    #[tokio::test]
    async fn a_deadline_in_which_redis_is_never_used_was_accepted() {
        let build = |millis| {
            tollgate::RateLimiter::builder()
                .limit("burst", tollgate::Quota::per_second(1))
                .store(Redis::connect(["redis://a"]).deadline(Duration::from_millis(millis)))
                .hash_key(key())
                .build()
        };
        let error = build(3).unwrap_err();
        assert!(error.to_string().contains("deadline 3ms: set at least 4ms"), "{error}");
        assert!(build(4).is_ok());
    }

    /// The bug: without a key, each node chose a random key, under which it named the counters, so
    /// no two nodes shared a counter.
    #[tokio::test]
    async fn nodes_without_a_hash_key_shared_no_counter() {
        let builder = || {
            tollgate::RateLimiter::builder()
                .limit("burst", tollgate::Quota::per_second(1).per("ip"))
                .store(Redis::connect(["redis://127.0.0.1:1"]))
        };
        let error = builder().build().unwrap_err();
        assert!(error.to_string().contains("call `hash_key`"), "{error}");
        assert!(builder().hash_key(key()).build().is_ok());
    }

    /// The guide's page shows the example of this crate's README, which compiles.
    #[test]
    fn the_example_of_the_guide_compiles() {
        let block = |page: &'static str, before: &str| {
            let (_, rest) = page.split_once(before).unwrap();
            let (_, block) = rest.split_once("```rust").unwrap();
            let (block, _) = block.split_once("```").unwrap();
            block.lines().skip(1).collect::<Vec<_>>()
        };
        let readme = block(include_str!("../README.md"), "# tollgate-backend");
        let page = include_str!("../../../docs/library.md");
        assert_eq!(block(page, "## Share limits through Redis"), readme);
    }

    fn key() -> HashKey {
        HashKey::from_secret(&[7; 32])
    }
}
