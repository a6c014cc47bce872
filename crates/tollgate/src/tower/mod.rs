//! Limiting as a [tower](https://docs.rs/tower) layer, for axum and any other HTTP service.
//!
//! Charges when a request arrives; answers 429 with problem details; tells the standings on every
//! answer; gives the charge back when the answer's status says so; and holds leases until the last
//! byte of the answer is sent or the client is gone.

mod body;
mod extract;
mod in_flight;
mod layer;
mod marks;
mod service;

pub use body::Body;
pub use layer::Layer;
pub use marks::{Peer, UpstreamFailed};
pub use service::Service;
