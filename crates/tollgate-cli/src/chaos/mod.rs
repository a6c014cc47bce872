//! `tollgate chaos`: faults on purpose, with real servers of its own, real limiters over them, and
//! the history checker as the judge.

mod error;
mod excess;
mod finding;
mod fleet;
mod latency;
mod load;
mod network;
mod nodes;
mod policy;
mod process;
mod question;
pub(crate) mod report;
pub(crate) mod run;
mod scenarios;
mod server;
mod site;
mod trial;
mod wait;
mod world;

pub(crate) use scenarios::Scenario;
pub(crate) use site::{Length, Site};
