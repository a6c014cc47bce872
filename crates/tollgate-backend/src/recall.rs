//! How long this node may remember what was refused, by what the policy can give back.

use std::collections::HashSet;

use tollgate::core::policy::answers::Refund;
use tollgate::core::policy::{ChargeOn, LimitFor, Rule, Rules};
use tollgate::core::{LimitMode, Policy};
use tollgate::store::refused::{DEFAULT_HOLD, Recall};
use tollgate_policy::{DecidingClock, RedisSettings, RememberRefusals};

/// Who gives back what was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refunds {
    /// The answers that the policy names, if it names any: a proxy, or the tower layer.
    ByAnswers,
    /// Whoever holds a receipt as well, through a door or by [`Limiter::refund`](tollgate::Limiter::refund).
    ByReceipts,
}

/// How long refusals are remembered: until the reset only where nothing frees units before it.
pub(crate) fn recall(redis: &RedisSettings, policy: &Policy, refunds: Refunds) -> Recall {
    let is_exact = refunds == Refunds::ByAnswers
        && !gives_back(policy)
        && !spans_shards(redis, policy)
        // A reset by another machine's clock is none by this one's.
        && redis.clock == DecidingClock::Application;
    match redis.remember_refusals {
        RememberRefusals::AlwaysAsk => Recall::Off,
        RememberRefusals::Remember if is_exact => Recall::UntilReset,
        RememberRefusals::Remember => Recall::Briefly(DEFAULT_HOLD),
    }
}

/// Whether an answer can give a charge back, or is what is charged for; callers that send
/// descriptors can give back by hits below zero, and nodes what they took in advance.
fn gives_back(policy: &Policy) -> bool {
    let answers = policy.answers();
    let waits_for_answer =
        |rule: &Rule| rule.charge == ChargeOn::Completion || !rule.metered.is_empty();
    !answers.refund_statuses.is_empty()
        || answers.refund_upstream_failure == Refund::GiveBack
        || !policy.domains().is_empty()
        || policy.limits().iter().any(|one| one.limit.mode() == LimitMode::Leased)
        || policy.rules().iter().any(waits_for_answer)
}

/// Whether a request's limits may live on several shards: what one of them holds is given back if
/// another one refuses, so that a limit can look used up and not be.
fn spans_shards(redis: &RedisSettings, policy: &Policy) -> bool {
    let homes = |rules: &[Rule]| {
        let used = rules.iter().flat_map(|rule| &rule.limits);
        let limits = used.map(|used| &policy.limits()[used.limit]);
        limits.map(|limit| routed_by(redis, policy, limit)).collect::<HashSet<_>>().len()
    };
    redis.shards.len() > 1
        && match policy.order() {
            Rules::FirstMatch => policy.rules().chunks(1).any(|rule| homes(rule) > 1),
            Rules::AllMatches => homes(policy.rules()) > 1,
        }
}

/// The dimension that says on which shard a subject of `limit` lives.
fn routed_by(redis: &RedisSettings, policy: &Policy, limit: &LimitFor) -> Option<usize> {
    let is_route = |dimension: &&usize| {
        redis.route_by.as_ref() == Some(&policy.dimensions()[**dimension].name)
    };
    limit.per.iter().find(is_route).or_else(|| limit.per.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::tests::redis;

    const SUBJECTS: &str = "
subjects: { token: { header: authorization }, address: { client_address: {} } }
limits:
  core:    { quota: 10, window: 1h, per: token }
  search:  { quota: 5, window: 1m, per: [token, address] }
  reverse: { quota: 5, window: 1m, per: [address, token] }
  all:     { quota: 9, window: 1m }
";

    const HOT: &str = "  hot:     { quota: 9, window: 1m, mode: leased }\n";

    fn recalled(rest: &str, redis: &RedisSettings) -> Recall {
        let hot = if rest.contains("hot") { HOT } else { "" };
        let text = format!("{SUBJECTS}{hot}{rest}");
        let policy = tollgate_policy::parse("test.yaml", &text).unwrap().policy;
        recall(redis, &policy, Refunds::ByAnswers)
    }

    #[test]
    fn a_receipt_can_free_units_before_the_reset() {
        let text = format!("{SUBJECTS}rules: [{{ limits: core }}]");
        let policy = tollgate_policy::parse("test.yaml", &text).unwrap().policy;
        let recalled = recall(&redis(&["a"]), &policy, Refunds::ByReceipts);
        assert_eq!(recalled, Recall::Briefly(DEFAULT_HOLD));
    }

    #[test]
    fn refusals_are_remembered_until_the_reset_where_nothing_is_given_back() {
        let redis = redis(&["a", "b"]);
        let briefly = Recall::Briefly(DEFAULT_HOLD);
        for (rest, expected) in [
            ("rules: [{ limits: [core, search] }]", Recall::UntilReset),
            ("rules: [{ limits: core }]\nanswers: { refund: { status: 304 } }", briefly),
            ("rules: [{ limits: core, charge: on_completion }]", briefly),
            ("rules: [{ limits: hot }]", briefly),
            ("rules: [{ limits: { core: { from_time: 1ms } } }]", briefly),
            ("rules: [{ limits: [core, reverse] }]", briefly),
            ("descriptors: [{ domain: a, tree: [{ key: b, limit: all }] }]", briefly),
            (
                "rules: [{ limits: core, match: { path: /a } }, { limits: reverse }]",
                Recall::UntilReset,
            ),
            ("rules_apply: all_matches\nrules: [{ limits: core }, { limits: reverse }]", briefly),
        ] {
            assert_eq!(recalled(rest, &redis), expected, "{rest}");
        }
    }

    #[test]
    fn one_home_for_all_limits_is_no_span() {
        let rest = "rules: [{ limits: [core, reverse] }]";
        assert_eq!(recalled(rest, &redis(&["a"])), Recall::UntilReset);
        let routed = RedisSettings { route_by: Some("token".into()), ..redis(&["a", "b"]) };
        assert_eq!(recalled(rest, &routed), Recall::UntilReset);
    }

    #[test]
    fn the_settings_have_the_last_word() {
        let rest = "rules: [{ limits: core }]";
        let never = RememberRefusals::AlwaysAsk;
        let asked = RedisSettings { remember_refusals: never, ..redis(&["a"]) };
        assert_eq!(recalled(rest, &asked), Recall::Off);
        let shards = RedisSettings { clock: DecidingClock::Store, ..redis(&["a"]) };
        assert_eq!(recalled(rest, &shards), Recall::Briefly(DEFAULT_HOLD));
    }
}
