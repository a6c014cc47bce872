//! Properties of every algorithm, for all operations in any order.
#![allow(missing_docs)]

mod bounds;
mod cells;
mod changes;
mod joins;
mod looks;
mod refunds;
mod reservations;
mod subjects;
mod trials;
mod waits;
mod world;
