//! `tollgate serve` behind nginx and HAProxy with the configurations of `deploy/`: real programs,
//! real sockets, exact counts.

mod client;
mod edge;
mod forward_auth;
mod haproxy;
mod laws;
mod nginx;
mod site;
mod tollgate;
