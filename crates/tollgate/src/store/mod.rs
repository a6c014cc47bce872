//! Where limits are kept.

pub mod memory;

pub use memory::Memory;
