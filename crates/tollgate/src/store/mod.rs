//! The stores that keep the counters of limits, and the wrappers around them.
//!
//! Every wrapper is a store over other stores. Its documentation states its guarantees, its
//! limitations and their bounds. Wrappers nest to form a topology:
//!
//! ```
//! use std::num::NonZeroU32;
//! use tollgate::HashKey;
//! use tollgate::store::deny_cache::{DenyCacheTtl, DenyCache};
//! use tollgate::store::{Atomic, Deadline, Fallback, Memory, Shard, LocalShare, Sharded};
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

pub mod atomic;
mod bounded_cache;
mod call_timer;
mod cells;
pub mod deadline;
pub mod deny_cache;
pub mod failover_replay;
pub mod fallback;
mod immediate;
mod join;
mod lazy_transfer;
pub mod memory;
mod owned_charge;
pub mod quota_lease;
mod quota_rescale;
pub mod rebalance;
mod rendezvous;
pub mod rollout;
pub mod rollout_percentage;
pub mod shadow;
pub mod sharded;

pub use atomic::{Atomic, Partitions};
pub use call_timer::CallTimer;
pub use deadline::Deadline;
pub use deny_cache::DenyCache;
pub use failover_replay::FailoverReplay;
pub use fallback::{Fallback, FallbackStore, LocalShare};
pub use immediate::ImmediateStore;
pub use memory::Memory;
pub use quota_lease::QuotaLease;
pub use quota_rescale::QuotaRescale;
pub use rebalance::Rebalance;
pub use rollout::Rollout;
pub use rollout_percentage::{Percent, RolloutPercentage};
pub use shadow::Shadow;
pub use sharded::{Shard, Sharded};
