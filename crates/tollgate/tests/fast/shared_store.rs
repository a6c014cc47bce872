//! A builder with a store that several nodes share.

use std::convert::Infallible;
use std::sync::Arc;

use tollgate::model::{Policy, StoreError, Timestamp};
use tollgate::{Clock, HashKey, ManualClock, OpenStore, Quota, RateLimiter, RequestLimiterBuilder};

use crate::degraded::{Log, TURNS};
use crate::faulty::{Faulty, Trouble};

/// The time of the store's server, which differs from the time of this machine.
const SERVER_TIME: Timestamp = Timestamp::from_millis(4_000_000_000_000);

/// A store with a server that has a clock.
struct Shared(Trouble);

impl OpenStore for Shared {
    type Store = Faulty;
    type Error = Infallible;

    const IS_SHARED: bool = true;

    fn open(self, _policy: &Policy, _key: &HashKey) -> Result<Faulty, Infallible> {
        let store = Faulty::new();
        store.usually(self.0);
        Ok(store)
    }

    fn clock(_store: &Faulty) -> Option<Arc<dyn Clock>> {
        Some(Arc::new(ManualClock::new(SERVER_TIME)))
    }
}

fn builder(trouble: Trouble) -> RequestLimiterBuilder<Shared> {
    RateLimiter::builder().limit("burst", Quota::per_second(10)).store(Shared(trouble))
}

fn key() -> HashKey {
    HashKey::from_secret(b"the same on every node, 32 bytes")
}

/// The bug: only limits with credentials needed a key. For the others each node chose a random key,
/// under which the store names counters, so no two nodes shared a counter.
#[test]
fn a_shared_store_without_a_hash_key_was_accepted() {
    let error = builder(Trouble::None).limit("burst", Quota::per_second(1)).build().unwrap_err();
    let mistakes: Vec<_> = error.mistakes().collect();
    assert_eq!(mistakes.len(), 2, "every mistake is named at once: {mistakes:?}");
    assert!(mistakes[1].contains("call `hash_key` with `HashKey::from_secret`"), "{mistakes:?}");
    assert!(builder(Trouble::None).hash_key(key()).build().is_ok());
    let own = RateLimiter::builder().limit("burst", Quota::per_second(1));
    assert!(own.build().is_ok(), "a store in memory needs no key");
}

/// The bug: a node decided by its own clock, even if the clock was wrong.
#[test]
fn a_builder_ignored_the_clock_of_the_store() {
    let limiter = builder(Trouble::None).hash_key(key()).build().unwrap();
    assert_eq!(limiter.limiter().now(), SERVER_TIME);
}

/// The bug: no log line reported that the store of a builder did not answer.
#[test]
fn an_outage_of_a_builders_store_was_not_logged() {
    let _turn = TURNS.lock();
    let lost = Trouble::Lost(StoreError::TimedOut);
    let limiter = builder(lost).hash_key(key()).build().unwrap();
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (parts, ()) = http::Request::new(()).into_parts();
        assert!(runtime.block_on(limiter.check(&parts, None)).is_admitted());
    });
    assert_eq!(
        *log.lines.lock(),
        [
            "the store did not answer: on_failure decided; rule=\"others\"; error=the store did not answer in time; suppressed=0",
        ]
    );
}
