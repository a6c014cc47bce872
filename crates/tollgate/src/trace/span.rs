//! Recorded spans.

use std::borrow::Cow;

use super::context::{SpanContext, SpanId};

/// The most attributes of a span; further ones are dropped.
pub const MAX_ATTRIBUTES: usize = 32;

/// A span that has ended: one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace and the id of the span.
    pub context: SpanContext,
    /// The id of the parent span; `None` for the first span of a trace.
    pub parent: Option<SpanId>,
    /// The `tracestate` that came with the parent.
    pub state: Option<Box<str>>,
    /// The name of the work, in few words that do not depend on the client.
    pub name: Cow<'static, str>,
    /// The side of a call on which the work was done.
    pub kind: SpanKind,
    /// The start time, in nanoseconds since the Unix epoch.
    pub began: u64,
    /// The end time, in nanoseconds since the Unix epoch, never before the start.
    pub ended: u64,
    /// The attributes, at most [`MAX_ATTRIBUTES`].
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The outcome of the work.
    pub outcome: SpanOutcome,
}

/// The side of a call on which work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The side that answers the call.
    Server,
    /// The side that makes the call.
    Client,
    /// Work within the process, on neither side of a call.
    Internal,
}

/// The outcome of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanOutcome {
    /// The work succeeded. A refusal is not a failure.
    #[default]
    Done,
    /// The work failed, for this reason.
    Failed(Cow<'static, str>),
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// Several texts, in order.
    Texts(Vec<Box<str>>),
    /// A whole number.
    Integer(i64),
    /// Several whole numbers, in order.
    Integers(Vec<i64>),
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}
