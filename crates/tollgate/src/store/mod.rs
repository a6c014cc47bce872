//! Where limits are kept, and what may stand between a limiter and there.
//!
//! Every wrapper is a store over stores, and says what it keeps of them, what it weakens and by
//! how much; a topology is a nesting, such as `Fallback<Deadline<Atomic<Sharded<S>>>, Share<Memory>>`.

pub mod atomic;
pub mod deadline;
pub mod fallback;
mod join;
pub mod memory;
mod recent;
pub mod refused;
pub mod sharded;
mod slot;

pub use atomic::{Atomic, Homes};
pub use deadline::Deadline;
pub use fallback::{Fallback, Share, StandIn};
pub use memory::Memory;
pub use refused::Refused;
pub use sharded::{Shard, Sharded};
