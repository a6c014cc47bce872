//! `tollgate serve` with nginx and HAProxy and the configurations in `deploy/`: real programs, real
//! sockets, exact counts.

mod client;
mod edge;
mod forward_auth;
mod haproxy;
mod laws;
mod nginx;
mod site;
mod tollgate;
