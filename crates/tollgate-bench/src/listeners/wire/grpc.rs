//! The messages of two gRPC services, throttlecrab's and Envoy's, and the frames around them.

use prost::Message;

use super::{Answer, BURST, COUNT, Decision, Unreadable};

/// The length in bytes of the prefix of a message: the compression flag, and the length of the
/// message.
const FRAME: usize = 5;

/// `throttlecrab.ThrottleRequest`
#[derive(Clone, PartialEq, Message)]
pub struct Throttle {
    /// The subject.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The burst.
    #[prost(int32, tag = "2")]
    pub max_burst: i32,
    /// The tokens that are added in a period.
    #[prost(int32, tag = "3")]
    pub count_per_period: i32,
    /// The period in seconds.
    #[prost(int32, tag = "4")]
    pub period: i32,
    /// The cost in tokens.
    #[prost(int32, tag = "5")]
    pub quantity: i32,
}

/// `envoy.service.ratelimit.v3.RateLimitRequest`, with the fields for one descriptor.
#[derive(Clone, PartialEq, Message)]
pub struct Envoy {
    /// The domain of the descriptors.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The descriptors.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
}

/// `RateLimitDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    /// The entries of the descriptor.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
}

/// `RateLimitDescriptor.Entry`
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

impl Throttle {
    /// Creates a request for one token of `key`'s bucket.
    #[must_use]
    pub fn one(key: &str) -> Self {
        let (max_burst, count_per_period) = (BURST as i32, COUNT as i32);
        Self { key: key.to_owned(), max_burst, count_per_period, period: 3600, quantity: 1 }
    }
}

impl Envoy {
    /// Creates a request for one descriptor of `domain` with one entry.
    #[must_use]
    pub fn one(domain: &str, key: &str, value: &str) -> Self {
        let entry = Entry { key: key.to_owned(), value: value.to_owned() };
        let descriptors = vec![Descriptor { entries: vec![entry] }];
        Self { domain: domain.to_owned(), descriptors }
    }
}

/// Returns the message encoded as protobuf.
#[must_use]
pub fn encoded(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

pub(super) fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// Parses the response of one of the two services. In both responses, field 1 contains the
/// decision, and its value 1 means that the request is admitted: `allowed: true` or
/// `overall_code: OK`.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
    let Some((&[0, head @ ..], rest)) = bytes.split_first_chunk::<FRAME>() else {
        return if bytes.is_empty() || bytes[0] == 0 {
            Ok(None)
        } else {
            Err(Unreadable::of(bytes))
        };
    };
    let length = u32::from_be_bytes(head) as usize;
    let Some(message) = rest.get(..length) else { return Ok(None) };
    let decision =
        if message.starts_with(&[8, 1]) { Decision::Admitted } else { Decision::Refused };
    Ok(Some(Answer { length: FRAME + length, decision }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_says_whether() {
        let admitted = Answer { length: 7, decision: Decision::Admitted };
        assert_eq!(read(&[0, 0, 0, 0, 2, 8, 1]).unwrap(), Some(admitted));
        let refused = Answer { decision: Decision::Refused, ..admitted };
        assert_eq!(read(&[0, 0, 0, 0, 2, 8, 2]).unwrap(), Some(refused));
        assert_eq!(read(&[0, 0, 0, 0, 2, 8]).unwrap(), None);
        assert!(read(&[1, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn a_descriptor_is_as_the_service_has_it() {
        let bytes = encoded(&Envoy::one("b", "u", "1"));
        assert_eq!(bytes, b"\x0a\x01b\x12\x08\x0a\x06\x0a\x01u\x12\x011");
    }
}
