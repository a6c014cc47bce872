//! A running node, asked at its listener for administration.

mod client;
mod format;
mod frame;
pub(crate) mod key;
pub(crate) mod overrides;
mod snapshot;
mod subject;
pub(crate) mod subjects;

pub(crate) use client::AdminClient;
pub(crate) use frame::frame;
pub(crate) use snapshot::Snapshot;
pub(crate) use subject::Subject;
