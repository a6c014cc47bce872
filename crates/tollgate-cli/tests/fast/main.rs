//! The commands, run as a person runs them, on what needs no other program: real processes, real sockets.

mod commands;
mod serve;
mod simulate;
#[path = "../support/mod.rs"]
mod support;
