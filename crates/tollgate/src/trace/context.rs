//! Identifiers of traces and spans, in the format of W3C Trace Context.

use std::fmt;

use http::{HeaderMap, HeaderValue};

use crate::receipt::new_charge_id;

/// The longest `tracestate` that is kept and passed on, in bytes; a longer one is dropped, as the
/// recommendation allows.
pub const MAX_TRACE_STATE_BYTES: usize = 512;

pub(super) const TRACEPARENT: &str = "traceparent";
pub(super) const TRACESTATE: &str = "tracestate";

/// The bit of the flags that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// The length of `traceparent` in the supported version.
const LENGTH: usize = 55;

/// A trace's id: never all zero. Shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub(super) [u8; 16]);

/// A span's id: never all zero. Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub(super) [u8; 8]);

/// The identity of a span, as a child span needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl SpanContext {
    /// Parses a `traceparent`; `None` if it is invalid, which counts as absent.
    ///
    /// Future versions are read as far as this version's fields go, as the recommendation requires.
    #[must_use]
    pub fn parse(traceparent: &[u8]) -> Option<Self> {
        let (known, rest) = traceparent.split_at_checked(LENGTH)?;
        let [version] = hex(&known[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let is_cut = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        if !is_whole || !is_cut {
            return None;
        }
        let (trace, span) = (hex(&known[3..35])?, hex(&known[36..52])?);
        let [flags] = hex(&known[53..])?;
        let is_someone = trace != [0; 16] && span != [0; 8];
        is_someone.then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags & SAMPLED != 0,
        })
    }

    /// The value of `traceparent` that names this span as the parent.
    #[must_use]
    pub fn traceparent(&self) -> HeaderValue {
        let text = format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled));
        // Digits and dashes are a valid value.
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// Returns the parent that a request names, and its `tracestate`. If a request names two parents,
/// both are ignored.
pub(super) fn parent_of(headers: &HeaderMap) -> Option<(SpanContext, Option<Box<str>>)> {
    let mut named = headers.get_all(TRACEPARENT).iter();
    let (first, second) = (named.next()?, named.next());
    let parent = SpanContext::parse(first.as_bytes()).filter(|_| second.is_none())?;
    Some((parent, state_of(headers)))
}

fn state_of(headers: &HeaderMap) -> Option<Box<str>> {
    let mut state = String::new();
    for value in headers.get_all(TRACESTATE) {
        let value = value.to_str().ok()?;
        if state.len() + value.len() >= MAX_TRACE_STATE_BYTES {
            return None;
        }
        if !state.is_empty() {
            state.push(',');
        }
        state.push_str(value);
    }
    (!state.is_empty()).then(|| state.into())
}

impl TraceId {
    /// Creates an id that no other trace has.
    pub(super) fn random() -> Self {
        let [first, second] = drawn();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..].copy_from_slice(&second.to_be_bytes());
        bytes[0] |= u8::from(bytes == [0; 16]);
        Self(bytes)
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// Creates an id that no other span of its trace has.
    pub(super) fn random() -> Self {
        let mut bytes = drawn()[0].to_be_bytes();
        bytes[0] |= u8::from(bytes == [0; 8]);
        Self(bytes)
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// Returns a number that is practically random, in less time than drawing one: from a charge's id,
/// which is a random number of its thread and a counter.
fn drawn() -> [u64; 2] {
    let id = new_charge_id().0;
    let (thread, count) = ((id >> 64) as u64, id as u64);
    let first = mix(thread ^ count);
    [first, mix(first ^ thread)]
}

/// Spreads consecutive numbers over all bits without collisions: the finalizer of SplitMix64
/// (Steele, Lea and Flood 2014).
const fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Formats bytes in hexadecimal, in lower case as the recommendation requires.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_parent_is_read_and_written_alike() {
        let parent = SpanContext::parse(GOOD.as_bytes()).unwrap();
        assert!(parent.is_sampled);
        assert_eq!(parent.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.span.to_string(), "00f067aa0ba902b7");
        assert_eq!(parent.traceparent(), GOOD);
        let unsampled = SpanContext::parse(GOOD.replace("-01", "-02").as_bytes()).unwrap();
        assert_eq!(unsampled.traceparent(), GOOD.replace("-01", "-00"));
        let future = format!("{}-more", GOOD.replacen("00", "42", 1));
        assert_eq!(SpanContext::parse(future.as_bytes()).unwrap(), parent);
    }

    #[test]
    fn what_names_no_parent_counts_as_none() {
        let zeros = |digits: &str| GOOD.replace(digits, &"0".repeat(digits.len()));
        for wrong in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{}x", GOOD.replacen("00", "42", 1)),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("4bf9", "4bg9"),
            &zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            &zeros("00f067aa0ba902b7"),
        ] {
            assert_eq!(SpanContext::parse(wrong.as_bytes()), None, "{wrong}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(parent_of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(parent_of(&headers), None);
    }

    #[test]
    fn the_state_is_joined_and_bounded() {
        let state = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRACESTATE, HeaderValue::try_from(*value).unwrap());
            }
            state_of(&headers)
        };
        assert_eq!(state(&[]), None);
        assert_eq!(state(&["a=1", "b=2"]).as_deref(), Some("a=1,b=2"));
        assert_eq!(state(&[&"a".repeat(MAX_TRACE_STATE_BYTES)]), None);
    }

    #[test]
    fn ids_differ_and_their_low_halves_are_spread() {
        let ids: Vec<TraceId> = (0..1_000).map(|_| TraceId::random()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 1_000);
        // Samplers use these bits: of a thousand fair draws about half have the highest bit.
        let high = ids.iter().filter(|id| id.0[8] >= 0x80).count();
        assert!((350..650).contains(&high), "{high}");
        let spans: HashSet<SpanId> = (0..1_000).map(|_| SpanId::random()).collect();
        assert_eq!(spans.len(), 1_000);
    }
}
