//! Tests of the commands as users run them, without other programs: real processes, real sockets.

mod commands;
mod serve;
mod simulate;
#[path = "../support/mod.rs"]
mod support;
