//! A running node, asked at its door for administration.

mod door;
mod frame;
pub(crate) mod key;
pub(crate) mod overrides;
mod snapshot;
pub(crate) mod subjects;

pub(crate) use door::Door;
pub(crate) use frame::frame;
pub(crate) use snapshot::Snapshot;
