//! Limits in Redis and Valkey: one server-side step decides, in one round trip.
//!
//! [`Redis`] is a [`Store`](tollgate_core::Store) on one server. The step is written in Lua, in
//! `src/step`, and gives the integers of [`tollgate_core::decide()`]. It runs as a function of the
//! server where there are functions, else as a script ([`Runs`]).

mod codec;
mod command;
mod error;
mod job;
mod key;
mod reply;
mod script;
mod step_codec;
mod store;

pub use error::StepError;
pub use key::Keys;
pub use script::{Choice, Runs};
pub use store::Redis;
