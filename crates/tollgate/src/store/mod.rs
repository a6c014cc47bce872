//! Where limits are kept, and what may stand between a limiter and there.
//!
//! Every wrapper is a store over stores, and says what it keeps of them, what it weakens and by
//! how much. An operator's topology is a nesting:
//!
//! ```
//! use std::num::NonZeroU32;
//! use tollgate::HashKey;
//! use tollgate::store::refused::{Recall, Refused};
//! use tollgate::store::{Atomic, Deadline, Fallback, Memory, Shard, Share, Sharded};
//!
//! let shard = |name: &str, weight| Shard { name: name.into(), weight, store: Memory::default() };
//! let key = HashKey::from_secret(b"the same on every node");
//! let shards = Sharded::new(key, [shard("north", 1), shard("south", 2)])?;
//! assert_eq!(shards.fair_share("south"), Some((2, 3)));
//!
//! let nodes = NonZeroU32::new(4).ok_or("at least this one")?;
//! let share = Share::new(Memory::default(), nodes);
//! assert_eq!(share.part_of(5_000), 1_250);
//!
//! let exact = Deadline::new(Atomic::new(shards));
//! let store = Refused::new(Fallback::new(exact, share)).with_recall(Recall::UntilReset);
//! assert_eq!(store.answered(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrivals;
pub mod atomic;
pub mod carry;
mod cells;
pub mod deadline;
pub mod dial;
pub mod fallback;
mod join;
pub mod leased;
pub mod memory;
mod owned;
mod recent;
pub mod refused;
pub mod repair;
pub mod rollout;
mod scaled;
pub mod shadow;
pub mod sharded;
mod slot;
mod timed;

pub use atomic::{Atomic, Homes};
pub use carry::Carry;
pub use deadline::Deadline;
pub use dial::{Dial, Percent};
pub use fallback::{Fallback, Share, StandIn};
pub use leased::Leased;
pub use memory::Memory;
pub use refused::Refused;
pub use repair::Repair;
pub use rollout::Rollout;
pub use scaled::Scaled;
pub use shadow::Shadow;
pub use sharded::{Shard, Sharded};
pub use timed::Timed;
