//! Tests of the model and the history checker, and automatic checks of the repository.

mod book;
mod bounds;
mod cells;
mod crates;
mod docs;
mod exhaustive;
mod faults;
mod history;
mod house;
mod modules;
mod prose;
mod source;
mod vectors;
