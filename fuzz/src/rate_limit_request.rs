//! Envoy's rate limit requests, as the gRPC listener reads them.

#[path = "../../crates/tollgate-server/src/grpc/proto.rs"]
#[allow(unused_imports, reason = "the target reads only requests")]
mod proto;
#[path = "../../crates/tollgate-server/src/grpc/request.rs"]
mod request;
#[path = "../../crates/tollgate-server/src/grpc/unary.rs"]
mod unary;

use std::convert::Infallible;

use futures_util::FutureExt;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use tokio_stream::iter;
use tollgate_core::policy::descriptors::{Hits, Rate, TimeUnit};
use tollgate_core::{Cost, MAX_EXACT};
use tonic::Status;

use proto::RateLimitRequest;
use request::{MAX_DESCRIPTORS, MAX_ENTRIES, MAX_KEY_BYTES, ParsedRequest, Size};
use unary::MAX_MESSAGE_BYTES;

/// The depth of nested messages and groups at which a decoder stops.
const MAX_DEPTH: usize = 100;

/// The result does not depend on how the body arrives, and a plain decoder finds the same valid
/// requests.
pub fn check(data: &[u8]) {
    let Some((&[form], rest)) = data.split_first_chunk::<1>() else { return };
    let Some((bytes, place)) = crate::cut(rest) else { return };
    let body = match form % 4 {
        // The bytes are the whole body, with the prefix of the message.
        0 => bytes.to_vec(),
        1 => framed(bytes),
        _ => framed(&written(bytes)),
    };
    let whole = rate_limit_request(&[&body]);
    let (first, last) = body.split_at(place.min(body.len()));
    assert_eq!(rate_limit_request(&[first, last]), whole, "split at {place}");
    assert_eq!(whole.as_ref().ok(), second_reading(&body).as_ref(), "{body:?} {whole:?}");
}

/// A descriptor of a valid request.
#[derive(Debug, PartialEq, Eq)]
struct ReadDescriptor {
    /// The keys and values.
    entries: Vec<(String, Vec<u8>)>,
    /// The units that are charged or refunded.
    hits: Hits,
    /// Whether the number of units is within the largest cost.
    is_countable: bool,
    /// The limit that the request brings.
    rate: Option<Rate>,
}

/// Reads the request of a call as the listener does. The body of the request arrives in the parts
/// `frames`. Returns the domain and the descriptors of the request.
///
/// # Errors
/// The code and the message of the status with which the listener would answer.
fn rate_limit_request(frames: &[&[u8]]) -> Result<(String, Vec<ReadDescriptor>), String> {
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

fn framed(message: &[u8]) -> Vec<u8> {
    let length = message.len() as u32;
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// Writes a message with correct lengths. Each part of `data` is a field: its kind, and a number
/// that is also the length of a text.
fn written(mut data: &[u8]) -> Vec<u8> {
    let (mut request, mut descriptor) = (Vec::new(), Vec::new());
    while let Some((&[kind, number], rest)) = data.split_first_chunk::<2>() {
        let (text, after) = rest.split_at(rest.len().min(usize::from(number & 31)));
        let key = &text[..text.len() / 2];
        let large = u64::from(number).wrapping_pow(u32::from(kind >> 4));
        data = after;
        match kind & 15 {
            0 => put(&mut request, 1, text),
            1 => put(&mut request, 2, &std::mem::take(&mut descriptor)),
            2 => put_number(&mut request, 3, large),
            3..7 => {
                let mut entry = Vec::new();
                put(&mut entry, 1, key);
                put(&mut entry, 2, &text[key.len()..]);
                put(&mut descriptor, 1, &entry);
            }
            7 => put(&mut descriptor, 1, text),
            8 => put(&mut descriptor, 2, text),
            9 => {
                let mut limit = Vec::new();
                put_number(&mut limit, 1, large);
                put_number(&mut limit, 2, u64::from(number % 8));
                put(&mut descriptor, 2, &limit);
            }
            10 => {
                let mut wrapped = Vec::new();
                put_number(&mut wrapped, 1, large);
                put(&mut descriptor, 3, &wrapped);
            }
            11 => put_number(&mut descriptor, 4, u64::from(number & 1)),
            12 => descriptor.extend(text),
            13 => put(&mut descriptor, u64::from(number), text),
            14 => request.extend(text),
            _ => put(&mut request, u64::from(number), text),
        }
    }
    put(&mut request, 2, &descriptor);
    request
}

fn put(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, value.len() as u64);
    message.extend(value);
}

fn put_number(message: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(message, field << 3);
    put_varint(message, number);
}

fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        message.push(number as u8 | 128);
        number >>= 7;
    }
    message.push(number as u8);
}

/// The value of a field, by its wire type.
enum Wire<'b> {
    Varint(u64),
    Bytes(&'b [u8]),
    /// A number of fixed length, or a group. No field of the message has one.
    Other,
}

#[derive(Default)]
struct Descriptor {
    entries: Vec<(String, Vec<u8>)>,
    limit: Option<(u32, i32)>,
    hits: Option<u64>,
    is_negative: bool,
}

/// Returns the domain and the descriptors of the request in `body`, or `None` if it is invalid.
fn second_reading(body: &[u8]) -> Option<(String, Vec<ReadDescriptor>)> {
    let (&[compression, a, b, c, d], rest) = body.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compression != 0 || length > MAX_MESSAGE_BYTES {
        return None;
    }
    let (mut domain, mut descriptors, mut hits) = (String::new(), Vec::new(), 0);
    fields(rest.get(..length)?, MAX_DEPTH, |field, value| {
        match (field, value) {
            (1, Wire::Bytes(text)) => domain = String::from_utf8(text.to_vec()).ok()?,
            (2, Wire::Bytes(message)) => descriptors.push(descriptor(message)?),
            (3, Wire::Varint(number)) => hits = number as u32,
            (1..=3, _) => return None,
            _ => {}
        }
        Some(())
    })?;
    let is_valid = !domain.is_empty() && (1..=MAX_DESCRIPTORS).contains(&descriptors.len());
    let read: Option<_> = descriptors.into_iter().map(|one| valid(one, hits)).collect();
    Some((domain, read?)).filter(|_| is_valid)
}

fn descriptor(message: &[u8]) -> Option<Descriptor> {
    let mut read = Descriptor::default();
    fields(message, MAX_DEPTH - 1, |field, value| {
        match (field, value) {
            (1, Wire::Bytes(message)) => read.entries.push(entry(message)?),
            // A message that is there twice is merged.
            (2, Wire::Bytes(message)) => {
                let (requests, unit) = read.limit.get_or_insert_default();
                fields(message, MAX_DEPTH - 2, |field, value| {
                    match (field, value) {
                        (1, Wire::Varint(number)) => *requests = number as u32,
                        (2, Wire::Varint(number)) => *unit = number as i32,
                        (1..=2, _) => return None,
                        _ => {}
                    }
                    Some(())
                })?;
            }
            (3, Wire::Bytes(message)) => {
                let hits = read.hits.get_or_insert_default();
                fields(message, MAX_DEPTH - 2, |field, value| {
                    match (field, value) {
                        (1, Wire::Varint(number)) => *hits = number,
                        (1, _) => return None,
                        _ => {}
                    }
                    Some(())
                })?;
            }
            (4, Wire::Varint(number)) => read.is_negative = number != 0,
            (1..=4, _) => return None,
            _ => {}
        }
        Some(())
    })?;
    Some(read)
}

fn entry(message: &[u8]) -> Option<(String, Vec<u8>)> {
    let (mut key, mut text) = (String::new(), Vec::new());
    fields(message, MAX_DEPTH - 2, |field, value| {
        match (field, value) {
            (1, Wire::Bytes(bytes)) => key = String::from_utf8(bytes.to_vec()).ok()?,
            (2, Wire::Bytes(bytes)) => text = bytes.to_vec(),
            (1..=2, _) => return None,
            _ => {}
        }
        Some(())
    })?;
    Some((key, text))
}

/// Returns the meaning of a valid descriptor in a request with these hits.
fn valid(read: Descriptor, hits: u32) -> Option<ReadDescriptor> {
    let is_key = |(key, _): &(String, _)| (1..=MAX_KEY_BYTES).contains(&key.len());
    if !(1..=MAX_ENTRIES).contains(&read.entries.len()) || !read.entries.iter().all(is_key) {
        return None;
    }
    let rate = match read.limit {
        None => None,
        Some((requests, number)) => {
            let unit = match number {
                1 => TimeUnit::Second,
                2 => TimeUnit::Minute,
                3 => TimeUnit::Hour,
                4 => TimeUnit::Day,
                5 => TimeUnit::Month,
                6 => TimeUnit::Year,
                _ => return None,
            };
            Some(Rate { requests, unit })
        }
    };
    let units = read.hits.unwrap_or(if hits == 0 { 1 } else { hits.into() });
    let cost = Cost::new(units.min(MAX_EXACT)).expect("a cost");
    let hits = if read.is_negative { Hits::Refund(cost) } else { Hits::Charge(cost) };
    Some(ReadDescriptor { entries: read.entries, hits, is_countable: units <= MAX_EXACT, rate })
}

/// Calls `each` with the fields of a message, until it returns `None`. Returns `None` if the message
/// is invalid. At most `depth` messages and groups may be nested in it.
fn fields<'b>(
    mut message: &'b [u8],
    depth: usize,
    mut each: impl FnMut(u64, Wire<'b>) -> Option<()>,
) -> Option<()> {
    while !message.is_empty() {
        let (field, kind) = key(&mut message)?;
        each(field, value(&mut message, field, kind, depth)?)?;
    }
    Some(())
}

fn key(message: &mut &[u8]) -> Option<(u64, u64)> {
    let key = varint(message)?;
    (key <= u32::MAX.into() && key >> 3 != 0).then_some((key >> 3, key & 7))
}

fn value<'b>(message: &mut &'b [u8], field: u64, kind: u64, depth: usize) -> Option<Wire<'b>> {
    Some(match kind {
        0 => Wire::Varint(varint(message)?),
        1 => message.split_off(..8).map(|_| Wire::Other)?,
        2 => {
            let length = usize::try_from(varint(message)?).ok()?;
            Wire::Bytes(message.split_off(..length)?)
        }
        3 => loop {
            let (inner, kind) = key(message)?;
            if kind == 4 {
                break (inner == field).then_some(Wire::Other)?;
            }
            value(message, inner, kind, depth.checked_sub(1).filter(|depth| *depth > 0)?)?;
        },
        5 => message.split_off(..4).map(|_| Wire::Other)?,
        _ => return None,
    })
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let byte = *message.split_off_first()?;
        if place == 9 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 127) << (7 * place);
        if byte < 128 {
            return Some(number);
        }
    }
    None
}
