//! The commands, run as a person runs them: real processes, real sockets.

mod check;
mod demo;
mod import;
mod proxy;
mod shedding;
