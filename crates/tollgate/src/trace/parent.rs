//! The parent of a request's span, in the format of W3C Trace Context.
//!
//! The parser is written by hand. The propagator of `opentelemetry_sdk` 0.33 accepts a
//! `traceparent` with a wrong length, accepts a request with two `traceparent` fields, and rewrites
//! `tracestate` instead of forwarding it.

use http::{HeaderMap, HeaderValue};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The longest `tracestate` that is kept and passed on, in bytes. A longer `tracestate` is dropped,
/// as W3C Trace Context allows.
pub const MAX_TRACE_STATE_BYTES: usize = 512;

pub(super) const TRACEPARENT: &str = "traceparent";
pub(super) const TRACESTATE: &str = "tracestate";

/// The length of `traceparent` in the supported version, in bytes.
const LENGTH: usize = 55;

/// The parent span that the header fields of a request name.
#[derive(Debug, PartialEq)]
pub(super) struct Parent {
    pub(super) context: SpanContext,
    /// Whether the request has a `tracestate` that is short enough to be forwarded.
    pub(super) has_state: bool,
}

impl Parent {
    /// Returns the parent span that the header fields of a request name. Returns `None` if there is
    /// no valid parent, or if the request names two parents.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut named = headers.get_all(TRACEPARENT).iter();
        let (first, second) = (named.next()?, named.next());
        let first = first.to_str().ok().filter(|_| second.is_none())?;
        let state = state_of(headers);
        // A `tracestate` that OpenTelemetry cannot read is forwarded, but not recorded.
        let readable = state.as_deref().and_then(|state| state.parse().ok()).unwrap_or_default();
        Some(Self { context: parse(first, readable)?, has_state: state.is_some() })
    }
}

/// Parses a `traceparent`. Returns `None` for an invalid `traceparent`, which counts as absent.
///
/// If `traceparent` has a later version, only the fields of the supported version are read, as W3C
/// Trace Context requires.
fn parse(traceparent: &str, state: TraceState) -> Option<SpanContext> {
    let (known, rest) = traceparent.split_at_checked(LENGTH)?;
    let is_formed = known.bytes().enumerate().all(|(at, byte)| match at {
        2 | 35 | 52 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    });
    let is_whole = match &known[..2] {
        "00" => rest.is_empty(),
        "ff" => false,
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    if !is_formed || !is_whole {
        return None;
    }
    let trace = TraceId::from_hex(&known[3..35]).ok()?;
    let span = SpanId::from_hex(&known[36..52]).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(&known[53..], 16).ok()?) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, state);
    context.is_valid().then_some(context)
}

fn state_of(headers: &HeaderMap) -> Option<String> {
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
    (!state.is_empty()).then_some(state)
}

/// Returns the value of `traceparent` that names the span of `context` as the parent.
pub(super) fn traceparent(context: &SpanContext) -> HeaderValue {
    let (trace, span) = (context.trace_id(), context.span_id());
    let text = format!("00-{trace}-{span}-{:02x}", u8::from(context.is_sampled()));
    // Digits and dashes are a valid value.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parsed(text: &str) -> Option<SpanContext> {
        parse(text, TraceState::default())
    }

    #[test]
    fn a_parent_is_read_and_written_alike() {
        let parent = parsed(GOOD).unwrap();
        assert!(parent.is_sampled());
        assert_eq!(parent.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.span_id().to_string(), "00f067aa0ba902b7");
        assert_eq!(traceparent(&parent), GOOD);
        let unsampled = parsed(&GOOD.replace("-01", "-02")).unwrap();
        assert_eq!(traceparent(&unsampled), GOOD.replace("-01", "-00"));
        let future = format!("{}-more", GOOD.replacen("00", "42", 1));
        assert_eq!(parsed(&future).unwrap(), parent);
    }

    #[test]
    fn what_names_no_parent_counts_as_none() {
        let zeros = |digits: &str| GOOD.replace(digits, &"0".repeat(digits.len()));
        for wrong in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!("{GOOD}-more"),
            &format!("{}x", GOOD.replacen("00", "42", 1)),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("4bf9", "4bg9"),
            &GOOD.replace("4bf9", "+bf9"),
            &zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            &zeros("00f067aa0ba902b7"),
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(Parent::of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(Parent::of(&headers), None);
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
    fn a_state_that_is_not_recorded_is_forwarded_all_the_same() {
        for (value, recorded) in [("vendor=1", "vendor=1"), ("not a list", "")] {
            let mut headers = HeaderMap::new();
            headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
            headers.append(TRACESTATE, HeaderValue::from_static(value));
            let parent = Parent::of(&headers).unwrap();
            assert!(parent.has_state);
            assert_eq!(parent.context.trace_state().header(), recorded);
        }
    }
}
