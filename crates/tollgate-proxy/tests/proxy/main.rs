//! The proxy over real sockets, between clients that write raw bytes and upstreams that record what they get.

mod drain;
mod failure;
mod limits;
mod relay;
mod setup;
mod upgrade;
mod upstream;
