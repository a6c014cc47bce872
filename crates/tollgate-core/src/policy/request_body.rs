//! Whether a policy reads the bodies of requests.

use super::{Policy, ReservationSource, SubjectSource};

impl Policy {
    /// Returns whether the policy needs values from request bodies. If it does, a listener must
    /// buffer the bodies.
    #[must_use]
    pub fn reads_bodies(&self) -> bool {
        let metered = self.rules.iter().flat_map(|rule| &rule.metered);
        let mut sources = metered.filter_map(|metered| Some(&metered.reserve.as_ref()?.source));
        self.dimensions.iter().any(|dimension| dimension.source.reads_body())
            || sources.any(|source| matches!(source, ReservationSource::Json { .. }))
    }
}

impl SubjectSource {
    /// Returns whether the source reads a value from the body of the request.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        match self {
            Self::Json { .. } => true,
            Self::FirstOf { dimensions } => dimensions.iter().any(|one| one.source.reads_body()),
            Self::Claim(claim) => claim.token.reads_body(),
            _ => false,
        }
    }
}
