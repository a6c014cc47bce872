//! Hints about the reasons of failed TLS handshakes.

use std::io;

use tokio_rustls::rustls::{CertificateError, Error};

/// Returns advice about a handshake with a server that failed with `error`, if the server's
/// certificate is the reason.
///
/// ```
/// use std::io;
/// use tollgate_http::handshake_hint;
///
/// assert_eq!(handshake_hint(&io::Error::other("connection reset")), None);
/// ```
#[must_use]
pub fn handshake_hint(error: &io::Error) -> Option<&'static str> {
    let Some(Error::InvalidCertificate(reason)) = error.get_ref()?.downcast_ref() else {
        return None;
    };
    Some(match reason {
        // The signature is wrong if a trusted authority has the same name as the authority that
        // signed.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no trusted authority signed the server's certificate; trust its authority (--upstream-ca)"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for other names; use one of them in the URL of the upstream"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired; renew it"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; check the clocks"
        }
        // rustls has no variant for this error of webpki.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "the server presents the certificate of an authority; let the authority sign one for the server"
        }
        _ => "the server's certificate is not accepted",
    })
}
