//! Requests that services read in different ways.

/// Why a request can be read in different ways, so that its limits might not be those of what the
/// service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A segment of the path holds an encoded slash (`%2f`).
    EncodedSlash,
    /// The path holds a backslash, encoded (`%5c`) or not.
    Backslash,
    /// The path holds an encoded NUL (`%00`).
    Nul,
    /// The path holds a segment `.` or `..`, encoded or with parameters (`..;x`) as well.
    DotSegment,
    /// A `%` in the path is not followed by two hexadecimal digits.
    Escape,
    /// A header field or a cookie that a subject is read from occurs more than once.
    Repeated,
    /// A credential or a cookie that a subject is read from has more words, or other characters,
    /// than its syntax allows.
    Malformed,
}

impl Ambiguity {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::EncodedSlash,
        Self::Backslash,
        Self::Nul,
        Self::DotSegment,
        Self::Escape,
        Self::Repeated,
        Self::Malformed,
    ];

    /// Its name in metrics and logs.
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

    /// One sentence for the client: what is wrong. Plain ASCII without quotes or backslashes.
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
