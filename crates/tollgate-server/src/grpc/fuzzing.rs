//! The entry point of the fuzz target `rate_limit_request`. It is compiled only with
//! `--cfg fuzzing`.

use std::convert::Infallible;

use futures_util::FutureExt;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use tokio_stream::iter;
use tollgate::model::policy::descriptors::{Hits, Rate};
use tonic::Status;

use super::proto::RateLimitRequest;
use super::request::{ParsedRequest, Size};
use super::unary;

/// A descriptor of a valid request.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadDescriptor {
    /// The keys and values.
    pub entries: Vec<(String, Vec<u8>)>,
    /// The units that are charged or refunded.
    pub hits: Hits,
    /// Whether the number of units is within the largest cost.
    pub is_countable: bool,
    /// The limit that the request brings.
    pub rate: Option<Rate>,
}

/// Reads the request of a call. The body of the request arrives in the parts `frames`. Returns the
/// domain and the descriptors of the request.
///
/// # Errors
/// The code and the message of the status with which the listener would answer.
pub fn rate_limit_request(frames: &[&[u8]]) -> Result<(String, Vec<ReadDescriptor>), String> {
    let frames = frames.iter().map(|bytes| Bytes::copy_from_slice(bytes));
    let body = StreamBody::new(iter(frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)))));
    let message = unary::message(body).now_or_never().expect("all frames have arrived");
    let message: RateLimitRequest = message.map_err(|status| shown(&status))?;
    let parsed = ParsedRequest::read(&message).map_err(|error| shown(&error.into()))?;
    let descriptors = parsed.descriptors();
    let read = descriptors.iter().enumerate().map(|(index, descriptor)| {
        assert_eq!(descriptor.hits, parsed.hits(index));
        let owned = |(key, value): &(&str, &[u8])| ((*key).to_owned(), value.to_vec());
        ReadDescriptor {
            entries: descriptor.entries.iter().map(owned).collect(),
            hits: descriptor.hits,
            is_countable: parsed.size(index) == Size::Countable,
            rate: descriptor.rate,
        }
    });
    Ok((parsed.domain.to_owned(), read.collect()))
}

fn shown(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
