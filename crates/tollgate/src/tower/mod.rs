//! Limiting as a [tower](https://docs.rs/tower) layer, for axum and any other HTTP service.
//!
//! Charges a request when it arrives, or when its response is known if its rules say so. Refuses
//! with 429 and problem details. Writes the status of the limits into every response. Refunds
//! responses with a free status. Holds and renews permits of concurrency limits until the last byte
//! of the response is sent or the client disconnects. Reserves costs that the response reports, and
//! settles them when it ends.

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
pub use layer::Layer;
pub use service::Service;
pub(crate) use service::{Fields, answer, attributes_of};
pub use upgraded::{Upgraded, WhileUpgraded, upgraded};
