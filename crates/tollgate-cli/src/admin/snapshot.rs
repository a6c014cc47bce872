//! A snapshot of a node: its counters and status at one point in time.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::AdminClient;
use crate::failure::Failure;

/// A snapshot of a node: its counters and status at one point in time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) at: Instant,
    pub(super) client: String,
    pub(super) status: Value,
    /// The subjects with the most charged units. The next field, `refused`, has the subjects with
    /// the most refused units.
    pub(super) charged: Value,
    pub(super) refused: Value,
    pub(super) decisions: BTreeMap<String, Decisions>,
}

/// The decisions of one limit since the node started. `admitted` counts the requests that the limit
/// admitted, even if another limit refused them. `refused` counts the requests that this limit
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    pub(super) admitted: u64,
    pub(super) refused: u64,
}

impl Snapshot {
    /// Reads the state of the node of `client`.
    ///
    /// # Errors
    /// The errors of [`AdminClient::call`].
    pub(crate) async fn take(client: &AdminClient) -> Result<Self, Failure> {
        let get = |path| client.call(Method::GET, path, None);
        let status = get("/v1/status").await?;
        let charged = get("/v1/top?by=charged&count=8").await?;
        let refused = get("/v1/top?by=refused&count=8").await?;
        let decisions = decisions(&client.read("/metrics").await?);
        let at = Instant::now();
        Ok(Self { at, client: client.to_string(), status, charged, refused, decisions })
    }
}

/// Reads the counters of limits on a page for Prometheus.
///
/// `tollgate_decisions_total` counts the decision of the whole request at each of its limits, so
/// the refusals that it counts for a limit can be refusals by another limit.
/// `tollgate_refusals_total` names the limit that refused.
fn decisions(page: &str) -> BTreeMap<String, Decisions> {
    let mut found: BTreeMap<String, Decisions> = BTreeMap::new();
    for (limit, evaluated) in page.lines().filter_map(|line| sample(line, "decisions")) {
        // Most limits of a large policy make no decisions, so they are left out.
        if evaluated > 0 {
            found.entry(limit.to_owned()).or_default().admitted += evaluated;
        }
    }
    for (limit, refused) in page.lines().filter_map(|line| sample(line, "refusals")) {
        if let Some(counts) = found.get_mut(limit) {
            counts.refused += refused;
            counts.admitted = counts.admitted.saturating_sub(refused);
        }
    }
    found
}

/// Returns the limit and the value of a line such as
/// `tollgate_decisions_total{limit="core",decision="admitted",source="store"} 12`. Names of limits
/// need no escaping. Returns `None` if the line is not a sample of `counter`.
fn sample<'p>(line: &'p str, counter: &str) -> Option<(&'p str, u64)> {
    let labelled = line.strip_prefix("tollgate_")?.strip_prefix(counter)?;
    let (labels, count) = labelled.strip_prefix("_total{")?.split_once("} ")?;
    let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    let (_, limit) = pairs.find(|(name, _)| *name == "limit")?;
    Some((limit.trim_matches('"'), count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_belong_to_the_limit_that_refused() {
        let page = "# HELP tollgate_decisions_total text\n\
            tollgate_decisions_total{limit=\"core\",decision=\"admitted\",source=\"store\"} 3\n\
            tollgate_decisions_total{limit=\"core\",decision=\"admitted\",source=\"fallback\"} 2\n\
            tollgate_decisions_total{limit=\"core\",decision=\"refused\",source=\"store\"} 3\n\
            tollgate_decisions_total{limit=\"daily\",decision=\"refused\",source=\"store\"} 3\n\
            tollgate_refusals_total{limit=\"core\",source=\"store\"} 2\n\
            tollgate_refusals_total{limit=\"core\",source=\"fallback\"} 1\n\
            tollgate_refusals_total{limit=\"daily\",source=\"store\"} 0\n\
            tollgate_decisions_total{limit=\"idle\",decision=\"refused\",source=\"store\"} 0\n\
            tollgate_requests_total{decision=\"refused\",source=\"store\"} 9\n";
        let core = ("core".to_owned(), Decisions { admitted: 5, refused: 3 });
        let daily = ("daily".to_owned(), Decisions { admitted: 3, refused: 0 });
        assert_eq!(decisions(page), BTreeMap::from([core, daily]));
    }
}
