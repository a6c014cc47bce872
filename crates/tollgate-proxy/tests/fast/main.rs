//! The proxy over real sockets, between clients that write raw bytes and upstreams that record what they get.

mod cancel;
mod certificates;
mod corpus;
mod drain;
mod failure;
mod http2;
mod json_room;
mod layer;
mod lease;
mod limits;
mod malformed;
mod metered;
mod names;
mod nominated;
mod one_address;
mod relay;
mod reuse;
mod setup;
mod slow_clients;
mod tls;
mod unread_responses;
mod upgrade;
mod upstream;
mod upstreams;
mod withheld;
