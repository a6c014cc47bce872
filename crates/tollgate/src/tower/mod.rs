//! Limiting as a [tower](https://docs.rs/tower) layer, for axum and any other service.

mod marks;

pub use marks::{Peer, UpstreamFailed};
