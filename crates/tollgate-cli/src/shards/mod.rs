//! The output of `tollgate shards`.

pub(crate) mod follow;
pub(crate) mod home;
pub(crate) mod list;
pub(crate) mod plan;
mod share;
