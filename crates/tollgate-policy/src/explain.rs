//! The explanation of a policy file that `tollgate check` prints.

mod descriptor;
pub(crate) mod limit;
mod memcached;
mod shedding;
mod store;

use std::fmt;

use tollgate_core::Policy;
use tollgate_core::StatusSet;
use tollgate_core::policy::answers::RefundPolicy;
use tollgate_core::policy::{MatchMode, SubjectSource};
use tollgate_core::refusal::RefusalSettings;

use crate::load::LoadedPolicy;
use crate::network_file::NetworkFile;
use crate::settings::Settings;

/// The explanation of a policy file in words. [`Display`](fmt::Display) writes the explanation as
/// several lines, and ends every line with a line break.
#[derive(Clone, Copy, Debug)]
pub struct Explanation<'p> {
    policy: &'p Policy,
    settings: &'p Settings,
    network_files: &'p [NetworkFile],
}

/// Explains a policy file in words: its subjects, its limits, its rules in order, the responses to
/// clients, and the store of the counters. Passwords are left out.
#[must_use]
pub const fn explain(loaded: &LoadedPolicy) -> Explanation<'_> {
    Explanation {
        policy: &loaded.policy,
        settings: &loaded.settings,
        network_files: loaded.network_files.as_slice(),
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.policy;
        let subjects = policy.dimensions().iter().map(|one| (&*one.name, limit::source(one)));
        table(f, "subjects", subjects.collect())?;
        table(f, "tokens", self.tokens())?;
        table(f, "networks", self.networks())?;
        let limits = policy.limits().iter();
        let limits = limits.map(|one| (one.limit.name(), limit::limit(policy, one)));
        table(f, "limits", limits.collect())?;
        self.rules(f)?;
        self.paths(f)?;
        for domain in policy.domains() {
            let rows = descriptor::rows(policy, domain);
            let rows = rows.iter().map(|(path, text)| (&**path, text.clone()));
            table(f, &descriptor::title(domain), rows.collect())?;
        }
        self.answers(f)?;
        table(f, "shedding", shedding::rows(policy))?;
        table(f, "store", store::store(&self.settings.store))
    }
}

impl Explanation<'_> {
    fn rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.policy;
        let title = match policy.match_mode() {
            MatchMode::FirstMatch => "rules, the first match decides",
            MatchMode::AllMatches => "rules, all matches decide together",
        };
        let rules = policy.rules().iter().map(|rule| {
            let conditions = limit::conditions(policy, &rule.matches);
            let limits = limit::uses(policy, rule);
            let mode_notes = limit::mode_notes(rule);
            (&*rule.name, format!("{conditions} → {limits}{mode_notes}"))
        });
        table(f, title, rules.collect())
    }

    /// Returns the rows of the explanation that describe the tokens (JWT) from which subjects read
    /// claims.
    fn tokens(&self) -> Vec<(&str, String)> {
        let readers = self.policy.dimensions().iter().filter_map(|one| match &one.source {
            SubjectSource::Claim(claim) => Some(&claim.reader),
            _ => None,
        });
        readers.take(1).map(|reader| ("accepted", reader.description().to_owned())).collect()
    }

    /// Returns the rows of the explanation that describe the named lists of networks which rules
    /// use.
    fn networks(&self) -> Vec<(&str, String)> {
        let mut rows: Vec<(&str, String)> = Vec::new();
        for list in self.policy.rules().iter().flat_map(|rule| rule.matches.network_lists()) {
            let name = &*list.name;
            if !list.is_named || rows.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let ranges = list.networks.ranges();
            let ranges = format!("{ranges} {}", if ranges == 1 { "range" } else { "ranges" });
            let file = self.network_files.iter().find(|file| file.name == name);
            let file = file.map(|file| format!(", from {}", file.path.display()));
            rows.push((name, format!("{ranges} of addresses{}", file.unwrap_or_default())));
        }
        rows
    }

    /// Writes how paths are compared, if a rule has a path pattern.
    fn paths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.policy.rules().iter().all(|rule| rule.matches.path_patterns().is_empty()) {
            return Ok(());
        }
        writeln!(f, "paths\n  {}", limit::paths(self.policy.paths()))
    }

    fn answers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.policy.answers();
        let mut rows = vec![
            ("headers", limit::profiles(answers)),
            (
                "refusal",
                match &answers.refusal {
                    Some(refusal) => {
                        let status = Some(answers.refuse_status);
                        limit::refusal(&RefusalSettings { status, ..(**refusal).clone() })
                    }
                    None => format!("status {}", answers.refuse_status),
                },
            ),
        ];
        if !answers.refund_statuses.is_empty() {
            let statuses: StatusSet = answers.refund_statuses.iter().copied().collect();
            rows.push(("refund", format!("if the service responds with {statuses}")));
        }
        if answers.refund_upstream_failure == RefundPolicy::Refund {
            rows.push(("refund", "if the service does not respond".to_owned()));
        }
        if let Some(path) = &answers.status_path {
            rows.push(("status path", format!("GET {path}, never charged")));
        }
        if !self.policy.forwarding().trusted.is_empty() {
            let networks = self.policy.forwarding().trusted.iter().map(ToString::to_string);
            rows.push((
                "proxies",
                format!("{} are trusted", networks.collect::<Vec<_>>().join(", ")),
            ));
        }
        table(f, "answers", rows)
    }
}

/// Writes a title, and below it the rows of a table. Each row has a name and a description.
fn table(f: &mut fmt::Formatter<'_>, title: &str, rows: Vec<(&str, String)>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    writeln!(f, "{title}")?;
    rows.into_iter().try_for_each(|(name, text)| writeln!(f, "  {name:width$}  {text}"))
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn trees_of_descriptors_are_explained() {
        let text = "
limits:
  slow: { quota: 3, window: 1s, anchor: calendar }
  all: { quota: 9, window: 1m }
rules: [{ limits: all }]
descriptors:
  - domain: shop
    counting: each
    on_failure: deny
    tree:
      - { key: free, unlimited: true }
      - { key: path, value: /health }
  - domain: edge
    tree:
      - { key: generic_key, value: slow, limit: slow }
      - key: remote_address
        limit: slow
        name: per-address
        mode: quota
        metadata: { tier: 1 }
        descriptors:
          - { key: path, value: /search*, limit: slow, share_threshold: true, mode: shadow }
          - { key: path, value: /, blocked: true, replaces: per-address }
";
        let text = explain(&crate::parse("shop.yaml", text).unwrap()).to_string();
        let (_, text) = text.split_once("limits\n").unwrap();
        let (text, _) = text.split_once("answers\n").unwrap();
        let expected = "  \
  slow  3 requests per 1s (calendar) for each descriptor
  all   9 requests per 1m for all clients together
rules, the first match decides
  rule-1  every request → all
descriptors of edge, all descriptors of a request counted or none
  generic_key=slow                              slow
  remote_address                                slow (quota); name per-address; with metadata
  remote_address, path=/search* (all together)  slow (shadow)
  remote_address, path=/                        blocked; replaces per-address
descriptors of shop, each counted separately; refused while the store does not answer
  free          unlimited
  path=/health  no limit
";
        assert_eq!(text, expected);
    }

    #[test]
    fn shedding_is_explained() {
        let text = |shed: &str| {
            let text = format!(
                "limits: {{ core: {{ quota: 1, window: 1s }} }}\n\
                 rules: [{{ limits: core, priority: critical }}]\nshed: {shed}\n"
            );
            let text = explain(&crate::parse("shop.yaml", &text).unwrap()).to_string();
            let (_, text) = text.split_once("rule-1  every request → ").unwrap();
            let (rule, text) = text.split_once('\n').unwrap();
            assert_eq!(rule, "core; priority critical");
            let (_, text) = text.split_once("shedding\n").unwrap();
            text.split_once("store\n").unwrap().0.to_owned()
        };
        let fixed = "{ mode: shadow, fleet: { capacity: 200 }, worker: { in_flight: 9, loop_delay: 5ms, mode: off } }";
        let expected = "  \
  fleet   at most 200 requests in flight on all nodes, 40 of them kept for critical requests
  worker  at most 9 requests in flight; task delay at most 5ms (off)
  all     counted, never refused
";
        assert_eq!(text(fixed), expected);
        let adaptive =
            "{ worker: { adaptive: { algorithm: aimd, min: 2, max: 8 }, queue_delay: 1s } }";
        let expected = "  \
  worker  2 to 8 requests in flight, by AIMD, responses within 5s; queueing delay at most 1s
";
        assert_eq!(text(adaptive), expected);
    }

    #[test]
    fn a_policy_is_explained() {
        let text = "
subjects:
  token: { header: authorization }
  address: { client_address: {}, ipv6_prefix: 56 }
  user: { path_parameter: id }
limits:
  core: { quota: 5000, window: 1h, per: token, enforce: 10%, candidate: { quota: 3000 } }
  burst: { algorithm: token_bucket, quota: 10, window: 1s, burst: 50, per: [token, address] }
  all: { algorithm: concurrency, quota: 100, visible: false }
  login: { algorithm: sliding_log, quota: 5, window: 15m, per: user, count_refused: true, resource: core }
rules:
  - { name: write, match: { method: [POST, PUT], path: /a/**, has: token }, limits: [core, { burst: 5 }] }
  - { name: login, match: { path: '/u/{id}', host: example.com, header: { x-beta: 'on' }, lacks: token }, limits: login, mode: shadow }
  - { name: rest, limits: all }
answers: { headers: [github, ietf], refund: { status: 304, upstream_failure: true }, status_path: /rate_limit, on_failure: deny }
trusted_proxies: 10.0.0.0/8
";
        let loaded = crate::parse("shop.yaml", text).unwrap();
        let expected = "\
subjects
  token    the credential in authorization, hashed
  address  the client's address, for IPv6 its /56
  user     {id} in the path
limits
  core   5000 requests per 1h for each token; enforced for 10% of the subjects; candidate: 3000 requests per 1h
  burst  10 requests per 1s, at most 50 at once for each token and address
  all    100 requests in flight at once for all clients together; hidden
  login  5 requests in any 15m for each user; refusals count; clients see it as core
rules, the first match decides
  write  POST or PUT, path /a/**, has token → core, burst at 5; refused with 503 while the store does not answer
  login  path /u/{id}, host example.com, header x-beta: on, lacks token → login (shadow); refused with 503 while the store does not answer
  rest   every request → all; refused with 503 while the store does not answer
paths
  compared exactly, with parameters (;x); ambiguous ones are refused with 400
answers
  headers      github, ietf
  refusal      status 429
  refund       if the service responds with 304
  refund       if the service does not respond
  status path  GET /rate_limit, never charged
  proxies      10.0.0.0/8 are trusted
store
  memory  of this process, at most 1000000 counters in 67108864 bytes
";
        assert_eq!(explain(&loaded).to_string(), expected);
    }

    #[test]
    fn outcomes_are_explained() {
        let text = "
limits:
  failures: { quota: 5, window: 15m, count: { status: [401, 403, 5xx, 410-420] } }
rules:
  - { limits: failures, refund: [304, 5xx] }
  - { name: never, match: { path: /a }, limits: failures, refund: [] }
answers: { refund: { status: [2xx, 304] } }
";
        let text = explain(&crate::parse("shop.yaml", text).unwrap()).to_string();
        let lines = [
            "5 requests per 15m for all clients together; only responses with 401, 403, 410-420, 5xx count",
            "rule-1  every request → failures; refunded if the service responds with 304, 5xx",
            "never   path /a → failures; no status refunds it",
            "refund   if the service responds with 2xx, 304",
        ];
        for line in lines {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
