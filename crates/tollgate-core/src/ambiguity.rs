//! Reasons why different services can interpret a request differently.

/// A reason why two services can interpret one request differently. Tollgate might then charge the
/// limits of another operation than the one that the service behind it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A segment of the path contains an encoded slash (`%2f`).
    EncodedSlash,
    /// The path contains a backslash, encoded (`%5c`) or not.
    Backslash,
    /// The path contains an encoded NUL (`%00`).
    Nul,
    /// The path contains a segment `.` or `..`, also encoded or with parameters (`..;x`).
    DotSegment,
    /// A `%` in the path is not followed by two hexadecimal digits.
    Escape,
    /// A header field, a cookie or a query parameter that identifies the subject occurs more than
    /// once.
    Repeated,
    /// A credential, a cookie or a query parameter that identifies the subject has an invalid
    /// value: too many words, or characters that its syntax does not allow.
    Malformed,
    /// The body that contains the subject is compressed, or its content type is not JSON.
    BodyType,
    /// The body that contains the subject is longer than the longest body that the listener reads.
    BodyTooLarge,
    /// The body that contains the subject did not arrive in time.
    BodyLate,
    /// The client sends the body that contains the subject only after `100 Continue`.
    BodyExpectation,
    /// The listener has no memory left for buffering the body that contains the subject.
    BodyRoom,
    /// The body has no readable value for the subject. The value is missing, repeated, too long, or
    /// neither a string nor a whole number, or the body is not JSON.
    BodyValue,
}

impl Ambiguity {
    /// All reasons.
    pub const ALL: [Self; 13] = [
        Self::EncodedSlash,
        Self::Backslash,
        Self::Nul,
        Self::DotSegment,
        Self::Escape,
        Self::Repeated,
        Self::Malformed,
        Self::BodyType,
        Self::BodyTooLarge,
        Self::BodyLate,
        Self::BodyExpectation,
        Self::BodyRoom,
        Self::BodyValue,
    ];

    /// Returns the HTTP status of the response that refuses a request for this reason.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BodyType => 415,
            Self::BodyTooLarge => 413,
            Self::BodyLate => 408,
            Self::BodyExpectation => 417,
            Self::BodyRoom => 503,
            _ => 400,
        }
    }

    /// Returns the name of the reason in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EncodedSlash => "encoded_slash",
            Self::Backslash => "backslash",
            Self::Nul => "nul",
            Self::DotSegment => "dot_segment",
            Self::Escape => "escape",
            Self::Repeated => "repeated",
            Self::Malformed => "malformed",
            Self::BodyType => "body_type",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyLate => "body_late",
            Self::BodyExpectation => "body_expectation",
            Self::BodyRoom => "body_room",
            Self::BodyValue => "body_value",
        }
    }

    /// Returns one sentence that describes the problem to the client, in plain ASCII without quotes
    /// or backslashes.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::EncodedSlash => "The path holds an encoded slash (%2f).",
            Self::Backslash => "The path holds a backslash or an encoded one (%5c).",
            Self::Nul => "The path holds an encoded NUL (%00).",
            Self::DotSegment => "The path holds a segment of one or two dots; resolve it first.",
            Self::Escape => "A percent sign in the path is not followed by two hex digits.",
            Self::Repeated => {
                "A header field, cookie or query parameter that identifies the client occurs twice."
            }
            Self::Malformed => {
                "A credential, cookie or query parameter that identifies the client is malformed."
            }
            Self::BodyType => "The body must be JSON with a JSON content type, and not compressed.",
            Self::BodyTooLarge => "The body is too long to read its limits from it.",
            Self::BodyLate => "The body did not arrive in time to read its limits from it.",
            Self::BodyExpectation => "Send the body without waiting for 100 Continue.",
            Self::BodyRoom => "The server has no room to read the body; try again later.",
            Self::BodyValue => "The body lacks a text or a number that its limits are read from.",
        }
    }
}
