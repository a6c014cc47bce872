//! `tollgate serve` behind nginx and HAProxy with the configurations of `deploy/`: real programs,
//! real sockets, exact counts.

#[path = "../clients/api.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod api;
mod client;
mod edge;
mod forward_auth;
mod haproxy;
mod laws;
mod nginx;
mod site;
mod tollgate;
#[path = "../commands/world.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod world;
