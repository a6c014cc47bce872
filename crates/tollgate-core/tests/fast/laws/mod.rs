//! Properties of every algorithm, for all operations in any order.
#![allow(missing_docs)]

mod bounds;
mod cells;
mod changes;
mod conditions;
mod joins;
mod looks;
mod operations;
mod plans;
mod refunds;
mod reservations;
mod subjects;
mod texts;
mod trials;
mod waits;
mod world;
