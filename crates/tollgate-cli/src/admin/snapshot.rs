//! What a node tells of itself at one moment.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::AdminClient;
use crate::failure::Failure;

/// What a node tells of itself at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) at: Instant,
    pub(super) client: String,
    pub(super) status: Value,
    /// The heaviest subjects by units charged, and by units refused.
    pub(super) charged: Value,
    pub(super) refused: Value,
    pub(super) decisions: BTreeMap<String, Decisions>,
}

/// Decisions that asked one limit, since the node began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    pub(super) admitted: u64,
    pub(super) refused: u64,
}

impl Snapshot {
    /// Asks the node behind `listener`.
    ///
    /// # Errors
    /// What [`AdminClient::ask`] says.
    pub(crate) async fn take(client: &AdminClient) -> Result<Self, Failure> {
        let ask = |path| client.ask(Method::GET, path, None);
        let status = ask("/v1/status").await?;
        let charged = ask("/v1/top?by=charged&count=8").await?;
        let refused = ask("/v1/top?by=refused&count=8").await?;
        let decisions = decisions(&client.read("/metrics").await?);
        let at = Instant::now();
        Ok(Self { at, client: client.to_string(), status, charged, refused, decisions })
    }
}

/// Reads the counters of decisions on a page for Prometheus.
fn decisions(page: &str) -> BTreeMap<String, Decisions> {
    let mut found: BTreeMap<String, Decisions> = BTreeMap::new();
    for line in page.lines() {
        let Some((limit, verdict, count)) = sample(line) else { continue };
        // Most limits of a large policy are asked by nobody.
        if count == 0 {
            continue;
        }
        let counts = found.entry(limit.to_owned()).or_default();
        match verdict {
            "admitted" => counts.admitted += count,
            _ => counts.refused += count,
        }
    }
    found
}

/// `tollgate_decisions_total{limit="core",decision="admitted",source="store"} 12`: names of limits need no
/// escaping.
fn sample(line: &str) -> Option<(&str, &str, u64)> {
    let (labels, count) = line.strip_prefix("tollgate_decisions_total{")?.split_once("} ")?;
    let label = |name: &str| {
        let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value.trim_matches('"'))
    };
    Some((label("limit")?, label("decision")?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_added_up_over_who_decided() {
        let page = "# HELP tollgate_decisions_total text\n\
            tollgate_decisions_total{limit=\"core\",decision=\"admitted\",source=\"store\"} 3\n\
            tollgate_decisions_total{limit=\"core\",decision=\"admitted\",source=\"fallback\"} 2\n\
            tollgate_decisions_total{limit=\"core\",decision=\"refused\",source=\"store\"} 1\n\
            tollgate_decisions_total{limit=\"idle\",decision=\"refused\",source=\"store\"} 0\n\
            tollgate_requests_total{decision=\"refused\",source=\"store\"} 9\n";
        let expected = Decisions { admitted: 5, refused: 1 };
        assert_eq!(decisions(page), BTreeMap::from([("core".to_owned(), expected)]));
    }
}
