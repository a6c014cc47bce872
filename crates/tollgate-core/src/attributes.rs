//! What a policy may know of a request: a borrowed view, made once by the listener.

use alloc::string::String;
use core::fmt;
use core::net::IpAddr;

use crate::policy::pointer::JsonPointer;

/// The header fields of a request, and what its listener has read of its body.
pub trait Headers {
    /// The value of the `index`th field line named `name` (in lower case), in the order received.
    fn value(&self, name: &str, index: usize) -> Option<&[u8]>;

    /// The value of the only field line named `name` (in lower case), if there is only one.
    fn field(&self, name: &str) -> Field<'_> {
        match (self.value(name, 0), self.value(name, 1)) {
            (None, _) => Field::Absent,
            (Some(value), None) => Field::Once(value),
            (Some(_), Some(_)) => Field::Repeated,
        }
    }

    /// The number or text that stands at `pointer` in the body, which is JSON. `None` by default, for
    /// listeners that read no bodies.
    fn in_body(&self, _pointer: &JsonPointer) -> Option<String> {
        None
    }
}

/// How often a header field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// Never.
    Absent,
    /// Once, with this value.
    Once(&'a [u8]),
    /// More than once: services differ on which of the values they take.
    Repeated,
}

/// No headers at all.
impl Headers for () {
    fn value(&self, _name: &str, _index: usize) -> Option<&[u8]> {
        None
    }
}

/// Names (in lower case) and values, in the order received.
impl Headers for [(&str, &[u8])] {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.iter().filter(|(field, _)| *field == name).nth(index).map(|(_, value)| *value)
    }
}

/// A request as its policy sees it.
#[derive(Clone, Copy)]
pub struct RequestAttributes<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The host that was asked for, with or without a port.
    pub host: Option<&'a str>,
    /// The client's end of the connection.
    pub peer: Option<IpAddr>,
    /// The header fields.
    pub headers: &'a dyn Headers,
}

impl fmt::Debug for RequestAttributes<'_> {
    /// Without the headers, which hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("host", &self.host)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
