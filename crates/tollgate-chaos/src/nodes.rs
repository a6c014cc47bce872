//! What callers ask.

use std::sync::Arc;
use std::time::Duration;

use tollgate::DecisionSource;
use tollgate_conformance::history::Recorder;

use super::question::Question;

/// The nodes of a scenario, which share their limits, and the record of all that they told.
pub(crate) trait Nodes: Send + Sync + 'static {
    /// What a charge is given back with.
    type Receipt: Send;

    /// Has the node that serves this caller decide: who did, and what the charge is given back with
    /// if the request turns out to cost nothing. That nobody decided is a failure, whether the node
    /// said so or none could be asked.
    fn ask(
        &self,
        caller: usize,
        question: &Question,
    ) -> impl Future<Output = (DecisionSource, Option<Self::Receipt>)> + Send;

    /// Has the node that serves this caller give a charge back. Whether it could is in the record.
    fn refund(&self, caller: usize, receipt: Self::Receipt) -> impl Future<Output = ()> + Send;

    /// What they told.
    fn recorder(&self) -> &Arc<Recorder>;

    /// The units of a limit that the nodes together admit in one window without the store.
    fn admitted_alone_at_most(&self) -> u64;

    /// The longest that a decision takes, besides what the machine needs to run its task again.
    fn max_wait(&self) -> Duration;
}
