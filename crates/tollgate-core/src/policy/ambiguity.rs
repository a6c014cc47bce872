//! Requests that services interpret differently.

/// The reason why services can interpret a request differently. Its limits might then not be those
/// of the operation that the service executes.
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
    /// A header field or a cookie with a subject's value occurs more than once.
    Repeated,
    /// A credential or a cookie with a subject's value has more words, or other characters, than
    /// its syntax allows.
    Malformed,
}

impl Ambiguity {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::EncodedSlash,
        Self::Backslash,
        Self::Nul,
        Self::DotSegment,
        Self::Escape,
        Self::Repeated,
        Self::Malformed,
    ];

    /// Returns the name in metrics and logs.
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
        }
    }

    /// Returns one sentence for the client that describes the problem, in plain ASCII without
    /// quotes or backslashes.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::EncodedSlash => "The path holds an encoded slash (%2f).",
            Self::Backslash => "The path holds a backslash or an encoded one (%5c).",
            Self::Nul => "The path holds an encoded NUL (%00).",
            Self::DotSegment => "The path holds a segment of one or two dots; resolve it first.",
            Self::Escape => "A percent sign in the path is not followed by two hex digits.",
            Self::Repeated => "A header field or cookie that identifies the client occurs twice.",
            Self::Malformed => "A credential or cookie that identifies the client is malformed.",
        }
    }
}
