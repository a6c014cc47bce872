use std::fmt;

use http::StatusCode;

/// The reason why a client's bytes are refused before they become a request.
///
/// Each violation is either forbidden by RFC 9112 or interpreted differently by different servers,
/// which is how request smuggling works. No violation is repaired, because the repair would be a
/// guess about the interpretation of the next server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A line ends in a LF without CR.
    BareLineFeed,
    /// CR is not followed by LF.
    BareCarriageReturn,
    /// A control byte (NUL, vertical tab, DEL …) is in a head or a trailer section.
    ControlByte,
    /// More than one empty line comes before a request line.
    EmptyRequestLine,
    /// The first line is not `method SP target SP HTTP/x.y`.
    RequestLine,
    /// The method contains a byte that is not allowed in a token, or is too long.
    Method,
    /// The method is `CONNECT`. Tollgate is a gateway to its upstreams, not a forward proxy.
    Connect,
    /// The target has none of the forms that the method allows.
    Target,
    /// The target is longer than the limit.
    TargetTooLong,
    /// The version is not 1.0 or 1.1.
    Version,
    /// A field line has no name, an invalid name, or a space before its colon.
    FieldName,
    /// A field value continues on a second line (obsolete line folding).
    ObsoleteFold,
    /// The head or trailer section exceeds its limit of bytes.
    SectionTooLarge,
    /// The head or trailer section exceeds its limit of fields.
    TooManyFields,
    /// The request is HTTP/1.1 and has no `Host`.
    HostMissing,
    /// The request has more than one `Host`.
    HostRepeated,
    /// `Host` is not `host[:port]`.
    HostMalformed,
    /// The authority of an absolute target differs from `Host`.
    HostMismatch,
    /// `Content-Length` is not a single decimal number that fits.
    ContentLength,
    /// The request has more than one `Content-Length` line, equal or not.
    ContentLengthRepeated,
    /// The request has both `Content-Length` and `Transfer-Encoding`.
    LengthAndTransferEncoding,
    /// `Transfer-Encoding` is not exactly one `chunked`.
    TransferEncoding,
    /// An HTTP/1.0 request has `Transfer-Encoding`.
    TransferEncodingInOldVersion,
    /// The size line of a chunk is not a hexadecimal number that fits, or is too long.
    ChunkSize,
    /// A chunk's data is not followed by CRLF.
    ChunkEnd,
    /// The chunk extensions of a message exceed their limit of bytes.
    ChunkExtensions,
    /// A trailer field would change framing or routing.
    TrailerField,
    /// The head did not arrive in time.
    HeadTimeout,
}

impl Violation {
    /// Returns the status code of the response to the refused request.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::SectionTooLarge | Self::TooManyFields => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Connect => StatusCode::NOT_IMPLEMENTED,
            Self::HeadTimeout => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns one sentence for the client: the error and the correct form. The sentence needs no
    /// escaping in JSON.
    pub fn detail(self) -> &'static str {
        match self {
            Self::BareLineFeed => "A line ends in LF alone; end lines with CRLF.",
            Self::BareCarriageReturn => "A CR is not followed by LF; end lines with CRLF.",
            Self::ControlByte => "The head contains a control byte.",
            Self::EmptyRequestLine => "Empty lines come before the request line.",
            Self::RequestLine => "The request line is not: method, space, target, space, version.",
            Self::Method => "The method is not a token of at most 32 bytes.",
            Self::Connect => "CONNECT is not supported.",
            Self::Target => "The target is not a path, an absolute http URL, or * with OPTIONS.",
            Self::TargetTooLong => "The target is longer than this server accepts.",
            Self::Version => "Only HTTP/1.0, HTTP/1.1 and HTTP/2 are supported.",
            Self::FieldName => "A header line does not start with a name and a colon.",
            Self::ObsoleteFold => "A header value is folded over two lines.",
            Self::SectionTooLarge => "The header section is larger than this server accepts.",
            Self::TooManyFields => "The header section has more fields than this server accepts.",
            Self::HostMissing => "HTTP/1.1 needs a Host header.",
            Self::HostRepeated => "There is more than one Host header.",
            Self::HostMalformed => "The Host header is not a host with an optional port.",
            Self::HostMismatch => "The Host header and the target name different hosts.",
            Self::ContentLength => "Content-Length is not one decimal number.",
            Self::ContentLengthRepeated => "There is more than one Content-Length header.",
            Self::LengthAndTransferEncoding => {
                "There are both Content-Length and Transfer-Encoding headers."
            }
            Self::TransferEncoding => "Transfer-Encoding is not exactly: chunked.",
            Self::TransferEncodingInOldVersion => "HTTP/1.0 has no Transfer-Encoding.",
            Self::ChunkSize => "A chunk size is not a hexadecimal number that fits.",
            Self::ChunkEnd => "The data of a chunk is not followed by CRLF.",
            Self::ChunkExtensions => "The chunk extensions are larger than this server accepts.",
            Self::TrailerField => {
                "A trailer field would change the framing or routing of the message."
            }
            Self::HeadTimeout => "The request head did not arrive in time.",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for Violation {}
