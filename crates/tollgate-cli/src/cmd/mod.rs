//! The commands, one per file: each has its flags and a `run`.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod fmt;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod keys;
pub(crate) mod man;
pub(crate) mod proxy;
pub(crate) mod serve;
pub(crate) mod shards;
pub(crate) mod simulate;
pub(crate) mod suggest;
pub(crate) mod tenants;
pub(crate) mod top;
