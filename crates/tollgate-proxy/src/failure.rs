use std::{error::Error as StdError, io};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use tollgate::tower::{RequestIncomplete, UpstreamFailed};

use crate::{
    problem::Problem,
    upload::{Upload, UploadFault},
};

/// The reason why there is no response from the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamFailure {
    /// The client did not send the complete request body, or sent it incorrectly.
    Client(UploadFault),
    /// No connection to the upstream could be opened, or its host name could not be resolved.
    Unreachable,
    /// The TLS handshake with the upstream failed.
    Handshake,
    /// The connection to the upstream, or the lookup of its host name, took too long.
    ConnectTimeout,
    /// The upstream did not send a response head in time.
    ResponseTimeout,
    /// The upstream closed the connection before the head of the response was complete.
    ConnectionLost,
    /// The response of the upstream is not valid HTTP, or contradicts itself.
    InvalidResponse,
}

impl UpstreamFailure {
    /// Returns the failure that corresponds to `error`, the error of an attempt to connect to the
    /// upstream.
    pub(crate) fn to_connect(error: &(dyn StdError + 'static)) -> Self {
        match is_timeout(error) {
            true => Self::ConnectTimeout,
            false => Self::Unreachable,
        }
    }

    /// Returns the failure that corresponds to `error`, the error of sending a request to the
    /// upstream or of receiving its response.
    pub(crate) fn of(error: &hyper::Error) -> Self {
        match error.is_parse() {
            true => Self::InvalidResponse,
            false => Self::ConnectionLost,
        }
    }

    /// Returns the response to a request for which the upstream failed. `upload` is the progress of
    /// the request's body.
    pub(crate) fn into_response(self, upload: &Upload) -> Response<Full<Bytes>> {
        let mut response = self.problem().into_response();
        if !matches!(self, Self::Client(_)) {
            response.extensions_mut().insert(UpstreamFailed);
        }
        // Without a connection nothing was sent to the upstream, so the body did not cause the
        // failure.
        let is_connected =
            !matches!(self, Self::Unreachable | Self::Handshake | Self::ConnectTimeout);
        if is_connected && !upload.is_complete() {
            response.extensions_mut().insert(RequestIncomplete);
        }
        response
    }

    fn problem(self) -> Problem {
        let (status, detail) = match self {
            Self::Client(fault) => return fault.into(),
            Self::Unreachable => {
                (StatusCode::BAD_GATEWAY, "The upstream server could not be reached.")
            }
            Self::Handshake => {
                (StatusCode::BAD_GATEWAY, "The TLS handshake with the upstream server failed.")
            }
            Self::ConnectTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "The upstream server could not be reached in time.")
            }
            Self::ResponseTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "The upstream server did not respond in time.")
            }
            Self::ConnectionLost => (
                StatusCode::BAD_GATEWAY,
                "The upstream server closed the connection before it responded.",
            ),
            Self::InvalidResponse => {
                (StatusCode::BAD_GATEWAY, "The upstream server sent an invalid response.")
            }
        };
        Problem::new(status, detail)
    }
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}
