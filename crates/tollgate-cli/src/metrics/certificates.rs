//! Metrics of TLS certificates.

use tollgate_server::metrics::Exposition;

use super::families::{CERTIFICATE_EXPIRY, CERTIFICATE_RELOADS};
use crate::certificates::NamedCertificates;

/// Writes the expiry and the reloads of certificates, if the process has certificates.
pub(super) fn write(page: &mut Exposition, certificates: &[NamedCertificates]) {
    let all = || certificates.iter().map(|one| (one.name, one.status()));
    let expiry = all().filter_map(|(name, status)| Some(([name], status.expires_at?)));
    page.family(&CERTIFICATE_EXPIRY, expiry);
    let reloads = all().flat_map(|(name, status)| {
        [([name, "applied"], status.reloads), ([name, "rejected"], status.failed_reloads)]
    });
    page.family(&CERTIFICATE_RELOADS, reloads);
}
