//! The certificates that a process reloads and reports.

use std::path::Path;

use tollgate_proxy::{CertificateStatus, ClientTls, ServerTls, TlsError};

/// Certificates and the name of their owner: the name of a listener, or `upstream`.
#[derive(Clone, Debug)]
pub(crate) struct NamedCertificates {
    pub(crate) name: &'static str,
    certificates: Certificates,
}

#[derive(Clone, Debug)]
enum Certificates {
    Server(ServerTls),
    Client(ClientTls),
}

impl NamedCertificates {
    pub(crate) const fn of_listener(name: &'static str, tls: ServerTls) -> Self {
        Self { name, certificates: Certificates::Server(tls) }
    }

    pub(crate) const fn of_upstream(tls: ClientTls) -> Self {
        Self { name: "upstream", certificates: Certificates::Client(tls) }
    }

    /// Returns the paths of the files from which the certificates were read.
    pub(crate) fn files(&self) -> Vec<&Path> {
        match &self.certificates {
            Certificates::Server(tls) => tls.files().collect(),
            Certificates::Client(tls) => tls.files().collect(),
        }
    }

    /// Reads the files again. This call blocks.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        match &self.certificates {
            Certificates::Server(tls) => tls.reload(),
            Certificates::Client(tls) => tls.reload(),
        }
    }

    pub(crate) fn status(&self) -> CertificateStatus {
        match &self.certificates {
            Certificates::Server(tls) => tls.status(),
            Certificates::Client(tls) => tls.status(),
        }
    }
}
