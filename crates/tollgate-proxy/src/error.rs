use std::{fmt, time::Duration};

/// The smallest value of `limits.response_header_bytes`, which the HTTP client (hyper) requires.
pub(crate) const MIN_RESPONSE_HEADER_BYTES: usize = 8 * 1024;

/// The reason why a proxy did not start, or did not shut down cleanly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A limit that must be at least 1 is 0.
    Zero {
        /// The path of the setting in [`Settings`](crate::Settings).
        name: &'static str,
    },
    /// A timeout is below 1 ms or above a year.
    Wait {
        /// The path of the setting in [`Settings`](crate::Settings).
        name: &'static str,
        /// The value that was set.
        given: Duration,
    },
    /// `limits.response_header_bytes` is below 8 KiB, the minimum of the HTTP client.
    ResponseHeaderBytes {
        /// The value that was set.
        given: usize,
    },
    /// An upstream has an `https` URL, and `upstream_tls` is not set.
    UpstreamTls,
    /// Some connections were still busy at the end of the drain time, and the proxy closed them.
    DrainTimeout {
        /// The number of connections that were still busy.
        connections: u32,
        /// The drain time that has passed.
        waited: Duration,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { name } => write!(f, "{name} is 0; set it to at least 1"),
            Self::Wait { name, given } => {
                write!(f, "{name} is {given:?}; set it to at least 1ms and at most 365 days")
            }
            Self::ResponseHeaderBytes { given } => write!(
                f,
                "limits.response_header_bytes is {given}; set it to at least {MIN_RESPONSE_HEADER_BYTES}"
            ),
            Self::UpstreamTls => {
                f.write_str("an upstream has an https URL; set upstream_tls to its authorities")
            }
            Self::DrainTimeout { connections, waited } => write!(
                f,
                "{connections} connections were still busy {}s after the shutdown and were closed; \
                 raise timeouts.drain to give them longer",
                waited.as_secs()
            ),
        }
    }
}

impl std::error::Error for Error {}
