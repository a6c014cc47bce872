//! What holds of every algorithm, whatever is asked in whatever order.
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
