//! Limits in Redis and Valkey: one server-side step decides, in one round trip.

mod codec;
mod error;

pub use error::StepError;
