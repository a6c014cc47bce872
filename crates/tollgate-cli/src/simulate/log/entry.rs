//! One request of a log in a compact form, because many entries wait in the reorder buffer.

use std::net::{IpAddr, SocketAddr};

/// The most additional request headers that a field map can name.
pub(crate) const HEADERS_MAX: usize = 8;

/// The index of a text field in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Client,
    Method,
    Target,
    Host,
    User,
    Referer,
    UserAgent,
    Header(u8),
}

/// The number of text fields in an entry.
pub(super) const SLOTS: usize = 7 + HEADERS_MAX;

impl Slot {
    /// Returns the index of this slot's span.
    pub(super) fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Method => 1,
            Self::Target => 2,
            Self::Host => 3,
            Self::User => 4,
            Self::Referer => 5,
            Self::UserAgent => 6,
            Self::Header(n) => 7 + usize::from(n),
        }
    }
}

/// The place of a field in the text of its entry: the index of its first byte, and the index after
/// its last byte. An empty span means that the field is absent.
pub(super) type Span = (u16, u16);

/// One request as its log line describes it.
///
/// Text is stored as bytes, because logs contain arbitrary client input, UTF-8 or not. A field that
/// is missing in the line, or is `-`, is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The time of the request, in milliseconds since the Unix epoch. Below 2^53.
    pub(crate) time: u64,
    /// Bytes of the response body, if the log has this number.
    pub(crate) bytes: Option<u64>,
    /// Milliseconds from the request to the end of its response, if the log has it.
    pub(crate) duration: Option<u32>,
    /// Status of the response; 0 if the log has none.
    pub(crate) status: u16,
    pub(super) spans: [Span; SLOTS],
    /// The bytes of all fields, concatenated, so an entry needs one allocation.
    pub(super) text: Box<[u8]>,
}

impl Entry {
    /// Returns the client as the log names it: an address, or a host name if the server resolved
    /// names.
    ///
    /// If a proxy in front of Traefik named the client, Traefik logs `CLIENT, PROXY`. In this case,
    /// the first name is returned.
    pub(crate) fn client(&self) -> Option<&[u8]> {
        let text = self.text(Slot::Client)?;
        let first = text.split(|byte| *byte == b',').next().unwrap_or(text).trim_ascii();
        if first.is_empty() { Some(text) } else { Some(first) }
    }

    /// Returns the client's address, or `None` if [`client`](Self::client) is not an address with
    /// or without a port.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let text = std::str::from_utf8(self.client()?).ok()?;
        text.parse().ok().or_else(|| text.parse().ok().map(|with_port: SocketAddr| with_port.ip()))
    }

    /// Returns the method, if the request line has one.
    pub(crate) fn method(&self) -> Option<&[u8]> {
        self.text(Slot::Method)
    }

    /// Returns the request target: path and query, or whatever the client sent instead. Returns
    /// `None` if the log has no target.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        self.text(Slot::Target)
    }

    /// Returns the requested host if the log has it. The host is unchanged, so a port may follow.
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.text(Slot::Host)
    }

    /// Returns the authenticated user, or `None` if the log has no user.
    pub(crate) fn user(&self) -> Option<&[u8]> {
        self.text(Slot::User)
    }

    /// Returns the `Referer` header, or `None` if the log does not have it.
    pub(crate) fn referer(&self) -> Option<&[u8]> {
        self.text(Slot::Referer)
    }

    /// Returns the `User-Agent` header, or `None` if the log does not have it.
    pub(crate) fn user_agent(&self) -> Option<&[u8]> {
        self.text(Slot::UserAgent)
    }

    /// Returns the value of the header at `index` in
    /// [`FieldMap::headers`](super::FieldMap::headers), or `None` if the log does not have it.
    pub(crate) fn header(&self, index: usize) -> Option<&[u8]> {
        let index = u8::try_from(index).ok().filter(|&index| usize::from(index) < HEADERS_MAX)?;
        self.text(Slot::Header(index))
    }

    fn text(&self, slot: Slot) -> Option<&[u8]> {
        let (start, end) = self.spans[slot.index()];
        let text = self.text.get(usize::from(start)..usize::from(end))?;
        (!text.is_empty()).then_some(text)
    }
}
