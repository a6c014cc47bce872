//! Checks that every replica of a server can follow the server, before a node writes to the server.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use crate::codec::{Codec, ReplicaFitness, ReplicaNeeds};
use crate::connection::{Endpoint, LinkError, Pushes, ReplicaAddress, Replication, open};

/// The time after which replicas that gave no answer are queried once more.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The replicas of one server that passed the check.
///
/// A replica that this process cannot reach, or that does not answer, is not an error: the server
/// may report an address of the replica in another network.
#[derive(Debug, Default)]
pub(super) struct ReplicaCheck {
    fit: Vec<ReplicaAddress>,
    /// The time at which the replicas that gave no answer are queried again. `None` if every
    /// replica gave an answer.
    retry_at: Option<Instant>,
}

impl ReplicaCheck {
    /// Checks the replicas in `replication`, except the replicas that passed an earlier check.
    /// Waits for at most `within`.
    ///
    /// # Errors
    /// [`LinkError::ReplicaWithoutModule`] with the first replica that does not have the module.
    pub(super) async fn check<C: Codec>(
        &mut self,
        primary: &Endpoint,
        replication: Option<&Replication>,
        codec: &C,
        within: Duration,
    ) -> Result<(), LinkError> {
        let Some(replication) = replication else { return Ok(()) };
        if codec.replica_needs() == ReplicaNeeds::Nothing {
            return Ok(());
        }
        self.fit.retain(|fit| replication.replicas.contains(fit));
        let unknown: Vec<&ReplicaAddress> =
            replication.replicas.iter().filter(|replica| !self.fit.contains(replica)).collect();
        let waits = self.retry_at.is_some_and(|retry_at| Instant::now() < retry_at);
        if unknown.is_empty() || waits {
            return Ok(());
        }
        let query = async |replica: &ReplicaAddress| {
            let endpoint = primary.at(replica.host.to_string(), replica.port);
            let connection = open(&endpoint, 0, Pushes::Ignored).await.ok()?;
            codec.check_replica(&mut connection.handle()).await.ok()
        };
        let answers = join_all(unknown.iter().map(|replica| timeout(within, query(replica)))).await;
        self.retry_at = None;
        for (replica, answer) in unknown.into_iter().zip(answers) {
            match answer.ok().flatten() {
                Some(ReplicaFitness::Fit) => self.fit.push(replica.clone()),
                Some(ReplicaFitness::WithoutModule) => {
                    return Err(LinkError::ReplicaWithoutModule {
                        address: primary.to_string(),
                        replica: primary.at(replica.host.to_string(), replica.port).to_string(),
                    });
                }
                None => self.retry_at = Some(Instant::now() + RETRY_AFTER),
            }
        }
        Ok(())
    }
}
