//! Finds out whether a policy uses the client's address.

use tollgate_core::Policy;
use tollgate_core::policy::expression::{Attribute, Condition};
use tollgate_core::policy::{
    LimitBinding, QuotasByValue, RequestMatch, SubjectSource, WindowsByValue,
};

/// Returns whether a limit or a rule of `policy` uses the client's address. If the address is
/// unknown, such a limit counts all clients together, and such a rule may not match.
pub(super) fn is_used(policy: &Policy) -> bool {
    let tenant = policy.tenant_dimension().is_some_and(|one| is_read_by(&one.source));
    tenant
        || policy.limits().iter().any(|limit| is_used_by_limit(policy, limit))
        || policy.rules().iter().any(|rule| is_used_by_match(policy, &rule.matches))
}

/// Returns whether the subjects, the quota or the windows of a limit depend on the address.
fn is_used_by_limit(policy: &Policy, binding: &LimitBinding) -> bool {
    let quota = policy.quotas_of(&binding.limit).and_then(QuotasByValue::dimension);
    let window = policy.windows_of(&binding.limit).map(WindowsByValue::dimension);
    let mut used = binding.per.iter().copied().chain(quota).chain(window);
    used.any(|dimension| is_dimension(policy, dimension))
}

fn is_used_by_match(policy: &Policy, matches: &RequestMatch) -> bool {
    let RequestMatch { networks, has, lacks, when, any, not, .. } = matches;
    !networks.is_empty()
        || has.iter().chain(lacks).any(|dimension| is_dimension(policy, *dimension))
        || when.as_ref().is_some_and(|when| is_used_by_condition(policy, &when.condition))
        || any.iter().chain(not).any(|matches| is_used_by_match(policy, matches))
}

fn is_used_by_condition(policy: &Policy, condition: &Condition) -> bool {
    let mut is_used = false;
    condition.attributes(&mut |attribute| {
        is_used |= match attribute {
            Attribute::Address => true,
            Attribute::Dimension(dimension) => is_dimension(policy, *dimension),
            _ => false,
        };
    });
    is_used
}

/// Returns whether the dimension with the index `index` depends on the address.
fn is_dimension(policy: &Policy, index: usize) -> bool {
    policy.dimensions().get(index).is_some_and(|one| is_read_by(&one.source))
}

fn is_read_by(source: &SubjectSource) -> bool {
    match source {
        SubjectSource::ClientAddress { .. } => true,
        SubjectSource::FirstOf { dimensions } => {
            dimensions.iter().any(|one| is_read_by(&one.source))
        }
        SubjectSource::Expression { text, .. } => {
            let mut is_read = false;
            text.attributes(&mut |one| is_read |= matches!(one, Attribute::Address));
            is_read
        }
        _ => false,
    }
}
