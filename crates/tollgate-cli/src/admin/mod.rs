//! A running node, asked at its door for administration.

mod door;
mod frame;
pub(crate) mod key;
pub(crate) mod overrides;
mod snapshot;
mod subject;
pub(crate) mod subjects;
mod told;

pub(crate) use door::Door;
pub(crate) use frame::frame;
pub(crate) use snapshot::Snapshot;
pub(crate) use subject::Subject;
