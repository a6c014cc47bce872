//! Reasons of failed handshakes in words.

use std::io;

use tokio_rustls::rustls::{CertificateError, Error};

/// Returns what to do about a handshake with a server that failed with `error`, if its certificate is
/// the reason.
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
        // The signature is wrong if another authority has the same name.
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
        // webpki has no variant of rustls for it.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "the server presents the certificate of an authority; let the authority sign one for the server"
        }
        _ => "the server's certificate is not accepted",
    })
}
