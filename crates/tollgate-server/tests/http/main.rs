//! The HTTP/JSON door: what it answers, and to whom.

mod check;
mod world;
