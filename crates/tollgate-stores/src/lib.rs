//! Stores that wrap other stores: shards, deadlines, fallbacks, leases, replay and moves of
//! subjects.
//!
//! Every wrapper is a [`Store`](tollgate_core::Store) over other stores. The documentation of a
//! wrapper states its guarantees, its limitations and their bounds. Wrappers nest to form a
//! topology:
//!
//! ```
//! use std::num::NonZeroU32;
//! use tollgate::HashKey;
//! use tollgate::store::Memory;
//! use tollgate_stores::deny_cache::{DenyCacheTtl, DenyCache};
//! use tollgate_stores::{Atomic, Deadline, Fallback, Shard, LocalShare, Sharded};
//!
//! let shard = |name: &str, weight| Shard { name: name.into(), weight, store: Memory::default() };
//! let key = HashKey::from_secret(b"the same on every node");
//! let shards = Sharded::new(key, [shard("north", 1), shard("south", 2)])?;
//! assert_eq!(shards.fair_share("south"), Some((2, 3)));
//!
//! let nodes = NonZeroU32::new(4).ok_or("at least this one")?;
//! let share = LocalShare::new(Memory::default(), nodes);
//! assert_eq!(share.part_of(5_000), 1_250);
//!
//! let exact = Deadline::new(Atomic::new(shards));
//! let store = DenyCache::new(Fallback::new(exact, share)).with_ttl(DenyCacheTtl::UntilReset);
//! assert_eq!(store.hits(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate `tollgate-backend` composes the wrappers that a policy file selects. The store in
//! memory and the limiter are in the crate [`tollgate`].

pub mod atomic;
mod bounded_cache;
mod call_error;
mod call_timer;
mod cells;
pub mod deadline;
pub mod deny_cache;
pub mod failover_replay;
pub mod fallback;
mod join;
mod lazy_transfer;
mod owned_charge;
pub mod quota_lease;
mod quota_rescale;
pub mod rebalance;
mod rendezvous;
pub mod rollout;
pub mod shadow;
pub mod sharded;

pub use atomic::{Atomic, Partitions};
pub use call_timer::CallTimer;
pub use deadline::Deadline;
pub use deny_cache::DenyCache;
pub use failover_replay::FailoverReplay;
pub use fallback::{Fallback, FallbackStore, LocalShare};
pub use quota_lease::QuotaLease;
pub use quota_rescale::QuotaRescale;
pub use rebalance::Rebalance;
pub use rollout::Rollout;
pub use shadow::Shadow;
pub use sharded::{Shard, Sharded};

/// The Rust example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
