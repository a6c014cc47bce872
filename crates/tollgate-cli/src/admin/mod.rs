//! Requests to the admin listener of a running node.

mod client;
mod format;
mod frame;
pub(crate) mod key;
pub(crate) mod overrides;
mod snapshot;
mod subject;
pub(crate) mod subjects;
pub(crate) mod tenants;

pub(crate) use client::AdminClient;
pub(crate) use frame::frame;
pub(crate) use snapshot::Snapshot;
pub(crate) use subject::Subject;
