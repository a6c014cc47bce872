//! The attributes of a request that a policy can use. A listener creates one [`RequestAttributes`]
//! for each request, which borrows all parts of the request.

use alloc::string::String;
use core::fmt;
use core::net::IpAddr;

use crate::ambiguity::Ambiguity;
use crate::json_pointer::JsonPointer;

/// The access of a policy to values that only the listener can read: the header fields of a
/// request, values of its body, the client's certificate, and values of the application.
pub trait Headers {
    /// Returns the value of a field line named `name` (in lower case). `index` counts the field
    /// lines with this name from 0, in the order received. Returns `None` if there is no such line.
    fn value(&self, name: &str, index: usize) -> Option<&[u8]>;

    /// Returns how often the field `name` (in lower case) occurs: not at all, once, or more than
    /// once. If it occurs once, the result contains its value.
    fn field(&self, name: &str) -> Field<'_> {
        match (self.value(name, 0), self.value(name, 1)) {
            (None, _) => Field::Absent,
            (Some(value), None) => Field::Once(value),
            (Some(_), Some(_)) => Field::Repeated,
        }
    }

    /// Returns the number or string at `pointer` in the JSON body, as text. Different spellings of a
    /// number must have the same text, because each text is another subject. Returns `None` if the
    /// body has no such value or was not read. The default implementation always returns `None`,
    /// for listeners that do not read bodies.
    fn in_body(&self, _pointer: &JsonPointer) -> Option<String> {
        None
    }

    /// Returns the reason why [`in_body`](Self::in_body) finds no value, if the listener could not
    /// read the body. Returns `None` if the listener read the body, or if the request has no body.
    /// The default implementation always returns `None`.
    fn unread(&self) -> Option<Ambiguity> {
        None
    }

    /// Returns the name of kind `name` in the verified certificate that the client presented on its
    /// connection. Returns `None` if there is no certificate, or no such name in it. The default
    /// implementation always returns `None`, for listeners that do not pass certificates on.
    fn client_certificate(&self, _name: CertificateName) -> Option<&str> {
        None
    }

    /// Returns the value that the application provides for this request under `name`, if there is
    /// one. The default implementation always returns `None`, for listeners without an application.
    fn application_value(&self, _name: &str) -> Option<&str> {
        None
    }
}

/// The kind of a name in a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// The whole subject, such as `C=DE,O=Example,CN=billing`.
    Subject,
    /// The common name in the subject.
    CommonName,
    /// The first DNS name of the subject alternative names.
    Dns,
    /// The first URI of the subject alternative names.
    Uri,
    /// The first email address of the subject alternative names.
    Email,
}

/// How often a header field occurs in a request, and its value if it occurs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// The field does not occur.
    Absent,
    /// The field occurs once, with this value.
    Once(&'a [u8]),
    /// The field occurs more than once. Services differ on which of the values they use.
    Repeated,
}

/// A request without header fields.
impl Headers for () {
    fn value(&self, _name: &str, _index: usize) -> Option<&[u8]> {
        None
    }
}

/// Pairs of a name (in lower case) and a value, in the order received.
impl Headers for [(&str, &[u8])] {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.iter().filter(|(field, _)| *field == name).nth(index).map(|(_, value)| *value)
    }

    fn field(&self, name: &str) -> Field<'_> {
        let mut values = self.iter().filter(|(field, _)| *field == name).map(|(_, value)| *value);
        match (values.next(), values.next()) {
            (None, _) => Field::Absent,
            (Some(value), None) => Field::Once(value),
            (Some(_), Some(_)) => Field::Repeated,
        }
    }
}

/// The attributes of a request.
#[derive(Clone, Copy)]
pub struct RequestAttributes<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The query as sent, without the `?`.
    pub query: Option<&'a str>,
    /// The requested host, with or without a port.
    pub host: Option<&'a str>,
    /// The remote address of the connection.
    pub peer: Option<IpAddr>,
    /// The header fields, and other values that only the listener can read, such as those in the
    /// body.
    pub headers: &'a dyn Headers,
}

impl fmt::Debug for RequestAttributes<'_> {
    /// Formats the attributes without the query and the headers, because those can contain
    /// credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAttributes")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("host", &self.host)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
