//! Nodes with shards in Redis: real processes, real servers, real outages.

mod exact;
mod failover;
mod fleet;
mod flush;
mod github;
mod leases;
mod load;
mod on_failure;
mod reads;
mod restart;
mod start;
mod traces;
mod visitors;
