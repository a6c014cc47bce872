//! The store that keeps the counters of limits in this process.
//!
//! Stores that wrap other stores, such as shards and fallbacks, are in the crate `tollgate-stores`.

mod immediate;
pub mod memory;

pub(crate) use immediate::INLINE_CHARGES;
pub use immediate::ImmediateStore;
pub use memory::Memory;
