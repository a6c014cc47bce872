//! What is told of one piece of work.

use std::borrow::Cow;

use super::context::{SpanContext, SpanId};

/// The most attributes of a span; further ones are dropped.
pub const MAX_ATTRIBUTES: usize = 32;

/// One piece of work that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its place.
    pub context: SpanContext,
    /// Whose child it is; of nobody where its trace begins.
    pub parent: Option<SpanId>,
    /// The `tracestate` that came with the parent.
    pub state: Option<Box<str>>,
    /// What was done, in few words that do not depend on who asked.
    pub name: Cow<'static, str>,
    /// On which side of a call it was done.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since the Unix epoch.
    pub began: u64,
    /// When it ended, in nanoseconds since the Unix epoch, never before it began.
    pub ended: u64,
    /// What is known of it, at most [`MAX_ATTRIBUTES`].
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// How it ended.
    pub outcome: SpanOutcome,
}

/// On which side of a call work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Where the call is answered.
    Server,
    /// Where it is made.
    Client,
    /// On neither.
    Internal,
}

/// How work ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanOutcome {
    /// As it should: a refusal is no failure.
    #[default]
    Done,
    /// It record_failure, for this reason.
    Failed(Cow<'static, str>),
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// Several texts, in their order.
    Texts(Vec<Box<str>>),
    /// A whole number.
    Integer(i64),
    /// Several whole numbers, in their order.
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
