//! The policy file: YAML as a person writes it in, a checked [`Policy`](tollgate_core::Policy) or
//! every mistake with its place out.
//!
//! - [`load`] and [`parse`] read a file; [`Mistakes`] shows all that is wrong with it at once.
//!
//! A file goes through three forms, each in a module of its own: a tree in which everything knows
//! its place, the keys as written, and the policy as meant. The keys are declared once; reader,
//! schema and reference are made of that one declaration.

mod finding;
mod load;
mod meant;
mod nearest;
mod read;
mod report;
mod settings;
mod tree;
mod written;

pub use finding::{Finding, Mistakes};
pub use load::{LoadError, Loaded, MAX_FILE_BYTES, load, parse};
pub use settings::{KeySource, MemoryBounds, Settings};
