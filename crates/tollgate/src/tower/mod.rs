//! Limiting as a [tower](https://docs.rs/tower) layer, for axum and any other HTTP service.
//!
//! Charges when a request arrives, or where its rules say so when it is answered; answers 429 with
//! problem details; tells the statuses on every answer; charges nothing for an answer whose status
//! is free; and holds leases, renewed, until the last byte of the answer is sent or the client
//! is gone. What costs what the answer tells it reserves, and settles at the answer's end.

mod body;
mod extensions;
mod extract;
mod in_flight;
mod layer;
mod meter;
mod on_completion;
mod renewal;
mod service;
mod upgraded;

pub use body::Body;
pub use extensions::{JsonBody, Peer, UpstreamFailed};
pub use layer::Layer;
pub use service::Service;
pub use upgraded::{Upgraded, WhileUpgraded, upgraded};
