//! Descriptor trees: the nodes that a descriptor matches, and the charges of a request.
#![allow(missing_docs)]

mod matching;
mod planning;
mod world;
