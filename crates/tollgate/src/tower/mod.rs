//! Limiting as a [tower](https://docs.rs/tower) layer, for axum and any other HTTP service.
//!
//! The layer charges a request when the request arrives or, if the policy's rules say so, when its
//! response is known. The layer refuses requests with status 429 and problem details, writes the
//! status of the limits into every response, and refunds responses with a status that the policy
//! makes free. The layer holds and renews permits of concurrency limits until the last byte of the
//! response is sent or the client disconnects. After a protocol upgrade, the layer holds them until
//! the connection ends if the server calls [`upgraded()`]; otherwise the permits are released when
//! the 101 has been sent. If the response reports the cost, the layer reserves an estimate and
//! settles the cost when the response ends.

mod body;
mod extensions;
mod in_flight;
mod layer;
mod meter;
mod pending_charge;
mod renewal;
mod service;
mod upgraded;

pub use body::Body;
pub(crate) use extensions::{ApplicationValues, PeerFrom};
pub use extensions::{
    ClientCertificate, JsonBody, MatchedRules, Peer, Refused, RequestIncomplete, TlsClient,
    UnreadBody, UpstreamFailed,
};
pub(crate) use in_flight::InFlight;
pub use layer::Layer;
pub use service::Service;
pub(crate) use service::{Admitted, Fields, answer, attributes_of};
pub use upgraded::{Upgraded, WhileUpgraded, upgraded};
