//! The time for which this node caches refusals. The time depends on the refunds that the policy
//! permits.

use std::collections::HashSet;

use tollgate::model::policy::answers::RefundPolicy;
use tollgate::model::policy::{ChargeOn, LimitBinding, MatchMode, Rule};
use tollgate::model::{LimitMode, Policy};
use tollgate_policy::{DecisionClock, DenyCacheMode, RedisSettings};
use tollgate_stores::deny_cache::{DEFAULT_DENY_TTL, DenyCacheTtl};

/// The sources from which refunds can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refunds {
    /// Refunds come only from a proxy or the tower layer, when a response has a status that the
    /// policy names for refunds.
    ByResponses,
    /// Refunds also come from holders of receipts, through a listener or by
    /// [`Limiter::refund`](tollgate::Limiter::refund).
    ByReceipts,
}

/// Returns the time for which the deny cache keeps refusals. Refusals are kept until the reset only
/// if no units can become free before the reset.
pub(crate) fn deny_cache_ttl(
    redis: &RedisSettings,
    policy: &Policy,
    refunds: Refunds,
) -> DenyCacheTtl {
    let is_exact = refunds == Refunds::ByResponses
        && !refunds_charges(policy)
        && !spans_shards(redis, policy)
        // A reset by the shard's clock is not valid for this node's clock.
        && redis.clock == DecisionClock::Application;
    match redis.remember_refusals {
        DenyCacheMode::Disabled => DenyCacheTtl::Off,
        DenyCacheMode::Enabled if is_exact => DenyCacheTtl::UntilReset,
        DenyCacheMode::Enabled => DenyCacheTtl::AtMost(DEFAULT_DENY_TTL),
    }
}

/// Returns whether a charge can be refunded or changed later. Three causes are possible: a
/// response, callers with descriptors that send negative hits, and nodes that refund unused units
/// of leases.
fn refunds_charges(policy: &Policy) -> bool {
    let answers = policy.answers();
    let waits_for_answer = |rule: &Rule| {
        let refunds = rule.refund.as_ref().is_some_and(|statuses| !statuses.is_empty());
        rule.charge == ChargeOn::Completion || !rule.metered.is_empty() || refunds
    };
    !answers.refund_statuses.is_empty()
        || answers.refund_upstream_failure == RefundPolicy::Refund
        || !policy.domains().is_empty()
        || policy.limits().iter().any(|one| one.limit.mode() == LimitMode::Leased)
        || policy.limits().iter().any(|one| one.limit.counted().is_some())
        || policy.rules().iter().any(waits_for_answer)
}

/// Returns whether the limits of one request can be on several shards. If one shard refuses, the
/// charge on another shard is refunded, so a limit can briefly look used up although it is not.
fn spans_shards(redis: &RedisSettings, policy: &Policy) -> bool {
    let partitions = |rules: &[Rule]| {
        let used = rules.iter().flat_map(|rule| &rule.limits);
        let limits = used.map(|used| &policy.limits()[used.limit]);
        limits.map(|limit| routed_by(redis, policy, limit)).collect::<HashSet<_>>().len()
    };
    redis.shards.len() > 1
        && match policy.match_mode() {
            MatchMode::FirstMatch => policy.rules().chunks(1).any(|rule| partitions(rule) > 1),
            MatchMode::AllMatches => partitions(policy.rules()) > 1,
        }
}

/// Returns the dimension that selects the shard of a subject of `limit`, as an index into the
/// policy's dimensions. Returns `None` if the limit counts by no dimension.
fn routed_by(redis: &RedisSettings, policy: &Policy, limit: &LimitBinding) -> Option<usize> {
    let is_route = |dimension: &&usize| {
        redis.route_by.as_ref() == Some(&policy.dimensions()[**dimension].name)
    };
    limit.per.iter().find(is_route).or_else(|| limit.per.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::endpoints::tests::redis;

    const SUBJECTS: &str = "
subjects: { token: { header: authorization }, address: { client_address: {} } }
limits:
  core:    { quota: 10, window: 1h, per: token }
  search:  { quota: 5, window: 1m, per: [token, address] }
  reverse: { quota: 5, window: 1m, per: [address, token] }
  all:     { quota: 9, window: 1m }
";

    const HOT: &str = "  hot:     { quota: 9, window: 1m, mode: leased }\n";

    const FAILURES: &str = "  failures: { quota: 5, window: 1m, count: { status: 401 } }\n";

    fn deny_cache_ttl_of(rest: &str, redis: &RedisSettings) -> DenyCacheTtl {
        let hot = if rest.contains("hot") { HOT } else { "" };
        let failures = if rest.contains("failures") { FAILURES } else { "" };
        let text = format!("{SUBJECTS}{hot}{failures}{rest}");
        let policy = tollgate_policy::parse("test.yaml", &text).unwrap().policy;
        deny_cache_ttl(redis, &policy, Refunds::ByResponses)
    }

    #[test]
    fn a_receipt_can_free_units_before_the_reset() {
        let text = format!("{SUBJECTS}rules: [{{ limits: core }}]");
        let policy = tollgate_policy::parse("test.yaml", &text).unwrap().policy;
        let deny_cache_ttl_of = deny_cache_ttl(&redis(&["a"]), &policy, Refunds::ByReceipts);
        assert_eq!(deny_cache_ttl_of, DenyCacheTtl::AtMost(DEFAULT_DENY_TTL));
    }

    #[test]
    fn refusals_are_remembered_until_the_reset_where_nothing_is_refunded() {
        let redis = redis(&["a", "b"]);
        let briefly = DenyCacheTtl::AtMost(DEFAULT_DENY_TTL);
        for (rest, expected) in [
            ("rules: [{ limits: [core, search] }]", DenyCacheTtl::UntilReset),
            ("rules: [{ limits: core }]\nanswers: { refund: { status: 304 } }", briefly),
            ("rules: [{ limits: core, refund: [5xx] }]", briefly),
            ("rules: [{ limits: core, refund: [] }]", DenyCacheTtl::UntilReset),
            ("rules: [{ limits: failures }]", briefly),
            ("rules: [{ limits: core, charge: on_completion }]", briefly),
            ("rules: [{ limits: hot }]", briefly),
            ("rules: [{ limits: { core: { from_time: 1ms } } }]", briefly),
            ("rules: [{ limits: [core, reverse] }]", briefly),
            ("descriptors: [{ domain: a, tree: [{ key: b, limit: all }] }]", briefly),
            (
                "rules: [{ limits: core, match: { path: /a } }, { limits: reverse }]",
                DenyCacheTtl::UntilReset,
            ),
            ("rules_apply: all_matches\nrules: [{ limits: core }, { limits: reverse }]", briefly),
        ] {
            assert_eq!(deny_cache_ttl_of(rest, &redis), expected, "{rest}");
        }
    }

    #[test]
    fn one_home_for_all_limits_is_no_span() {
        let rest = "rules: [{ limits: [core, reverse] }]";
        assert_eq!(deny_cache_ttl_of(rest, &redis(&["a"])), DenyCacheTtl::UntilReset);
        let routed = RedisSettings { route_by: Some("token".into()), ..redis(&["a", "b"]) };
        assert_eq!(deny_cache_ttl_of(rest, &routed), DenyCacheTtl::UntilReset);
    }

    #[test]
    fn the_settings_have_the_last_word() {
        let rest = "rules: [{ limits: core }]";
        let never = DenyCacheMode::Disabled;
        let settings = RedisSettings { remember_refusals: never, ..redis(&["a"]) };
        assert_eq!(deny_cache_ttl_of(rest, &settings), DenyCacheTtl::Off);
        let shards = RedisSettings { clock: DecisionClock::Store, ..redis(&["a"]) };
        assert_eq!(deny_cache_ttl_of(rest, &shards), DenyCacheTtl::AtMost(DEFAULT_DENY_TTL));
    }
}
