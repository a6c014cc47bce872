//! The resolved parts of a policy file, and the policy that consists of them.

use tollgate_core::Policy;
use tollgate_core::policy::{
    Dimension, Domain, Forwarding, MatchMode, PathOptions, ResponseSettings,
};

use super::limits::ResolvedLimit;
use super::rules::ResolvedRule;
use super::shedding::ResolvedShedding;

/// The resolved parts of a policy file. A part is `None` if it has a mistake, which is reported.
pub(super) struct PolicyParts {
    pub(super) dimensions: Vec<Option<Dimension>>,
    pub(super) limits: Vec<Option<ResolvedLimit>>,
    pub(super) rules: Vec<Option<ResolvedRule>>,
    pub(super) match_mode: MatchMode,
    pub(super) forwarding: Option<Forwarding>,
    pub(super) paths: Option<PathOptions>,
    pub(super) answers: Option<ResponseSettings>,
    pub(super) domains: Vec<Option<Domain>>,
    pub(super) shed: Option<ResolvedShedding>,
    /// The index of the dimension that identifies tenants. The inner `None` means that the file
    /// defines no tenants.
    pub(super) tenants: Option<Option<usize>>,
}

impl PolicyParts {
    /// Composes the policy. Returns `None` if a part has a mistake.
    pub(super) fn compose(self) -> Option<Policy> {
        let shed = self.shed?;
        let (mut limits, mut quotas, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        for limit in self.limits {
            let limit = limit?;
            limits.push(limit.limit);
            quotas.extend(limit.quotas);
            windows.extend(limit.windows);
        }
        limits.extend(shed.pools);
        let policy = Policy::new(
            self.dimensions.into_iter().collect::<Option<_>>()?,
            limits,
            self.rules.into_iter().map(|rule| Some(rule?.rule)).collect::<Option<_>>()?,
            self.match_mode,
        )?
        .with_quotas(quotas)?
        .with_windows(windows)?
        .with_forwarding(self.forwarding?)
        .with_paths(self.paths?)
        .with_answers(self.answers?)
        .with_descriptors(self.domains.into_iter().collect::<Option<_>>()?)?
        .with_shedding(shed.shedding)?;
        match self.tenants? {
            Some(dimension) => policy.with_tenants(dimension),
            None => Some(policy),
        }
    }
}
