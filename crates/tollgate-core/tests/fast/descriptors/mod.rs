//! Descriptor trees: what a descriptor meets, and what a request is charged for it.
#![allow(missing_docs)]

mod matching;
mod planning;
mod world;
