//! `tollgate suggest`: proposes quotas from access logs.
//!
//! The modules in the order of the steps: [`subject`] (a policy that only counts) → [`usage`]
//! (requests of every subject in every window) → [`curve`] (the refusals that each quota would
//! cause) → [`proposal`] (a policy, and its refusals on the same logs) → [`report`].

mod curve;
pub(crate) mod proposal;
pub(crate) mod report;
pub(crate) mod share;
pub(crate) mod subject;
mod usage;
