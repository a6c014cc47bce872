//! One request of a log, as small as it can be kept while it waits for its turn.

use std::net::{IpAddr, SocketAddr};

/// Extra request headers that a field map can name.
pub(super) const HEADERS_MAX: usize = 8;

/// A text field's place in an entry.
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

/// Places for text in an entry.
pub(super) const SLOTS: usize = 7 + HEADERS_MAX;

impl Slot {
    /// The index of this slot's span.
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

/// Where a field stands in the entry's text: its first byte and the byte after its last. Empty means absent.
pub(super) type Span = (u16, u16);

/// One request, as its log line told it.
///
/// Text is kept as bytes: logs hold whatever clients sent, UTF-8 or not. A field that the line did not have, or had
/// as `-`, is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Milliseconds since the Unix epoch, below 2^53.
    pub(crate) time: u64,
    /// Bytes of the answer's body; 0 where the log has none.
    pub(crate) bytes: u64,
    /// Milliseconds from the request to the end of its answer, where the log tells it.
    pub(crate) duration: Option<u32>,
    /// Status of the answer; 0 where the log has none.
    pub(crate) status: u16,
    pub(super) spans: [Span; SLOTS],
    /// The fields' bytes, one after the other: one allocation an entry.
    pub(super) text: Box<[u8]>,
}

impl Entry {
    /// The client as the log names it: an address, or a host name where the server looked names up.
    pub(crate) fn client(&self) -> Option<&[u8]> {
        self.text(Slot::Client)
    }

    /// The client's address, where [`client`](Self::client) is one, alone or with a port.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let text = std::str::from_utf8(self.client()?).ok()?;
        text.parse().ok().or_else(|| text.parse().ok().map(|with_port: SocketAddr| with_port.ip()))
    }

    /// The method, where the request line had one.
    pub(crate) fn method(&self) -> Option<&[u8]> {
        self.text(Slot::Method)
    }

    /// The request target: path and query, or what the client sent in their place.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        self.text(Slot::Target)
    }

    /// The host that was asked, where the log names it, as it stands (a port may follow).
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.text(Slot::Host)
    }

    /// The authenticated user.
    pub(crate) fn user(&self) -> Option<&[u8]> {
        self.text(Slot::User)
    }

    /// The `Referer` header.
    pub(crate) fn referer(&self) -> Option<&[u8]> {
        self.text(Slot::Referer)
    }

    /// The `User-Agent` header.
    pub(crate) fn user_agent(&self) -> Option<&[u8]> {
        self.text(Slot::UserAgent)
    }

    /// The header that stands at `index` in [`FieldMap::headers`](super::FieldMap::headers).
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
