//! The interface between callers and nodes.

use std::sync::Arc;
use std::time::Duration;

use tollgate::DecisionSource;
use tollgate_conformance::history::Recorder;

use super::question::Question;

/// The nodes of a scenario, which share their limits, and a record of all answers of the nodes.
pub(crate) trait Nodes: Send + Sync + 'static {
    /// The receipt for a refund of a charge.
    type Receipt: Send;

    /// Sends a request to the node of `caller`. Returns the source of the decision, and a receipt
    /// if the charge is to be refunded. If the node reports that there is no decision, or does not
    /// answer, the source is a failure.
    fn decide(
        &self,
        caller: usize,
        question: &Question,
    ) -> impl Future<Output = (DecisionSource, Option<Self::Receipt>)> + Send;

    /// Refunds a charge through the node of `caller`. The record contains the result.
    fn refund(&self, caller: usize, receipt: Self::Receipt) -> impl Future<Output = ()> + Send;

    /// Returns the record of the answers.
    fn recorder(&self) -> &Arc<Recorder>;

    /// Returns the most units of a limit that all nodes together admit in one window without the
    /// store.
    fn max_fallback_units(&self) -> u64;

    /// Returns the longest time for a decision, excluding the machine's scheduling delays.
    fn max_wait(&self) -> Duration;
}
