//! Opens connections and verifies that their servers may be charged.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::codec::Codec;
use crate::connection::{
    Connection, Endpoint, Lag, LinkError, Pushes, ReplicationProgress, Role, ServerReport, open,
};
use crate::members::Members;

/// The role that a server must have.
#[derive(Clone, Debug)]
pub(crate) enum RequiredRole {
    /// The server accepts writes.
    Primary,
    /// The server accepts writes and reports its replication offset, if access rules permit that.
    /// The offset of the primary shows whether replicas keep up.
    ReportingPrimary(Arc<ReplicationProgress>),
    /// The server answers reads. Its data is current except for the replication delay.
    Replica(Arc<ReplicationProgress>),
}

/// The time limits for opening a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectLimits {
    /// The longest time from the first packet until the server is ready for commands.
    pub connect: Duration,
    /// The longest time for the round trip that verifies the connection.
    pub proof: Duration,
}

impl RequiredRole {
    pub(super) fn accepts(&self, role: Role) -> bool {
        match self {
            // If access rules hide the role, a replica is detected later, because a replica rejects
            // writes.
            Self::Primary | Self::ReportingPrimary(_) => {
                matches!(role, Role::Primary | Role::Unknown)
            }
            // A replica that was promoted is accepted too. If the promoted server is not the
            // shard's primary, its replication progress shows that.
            Self::Replica(_) => matches!(role, Role::Primary | Role::Replica | Role::Unknown),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Primary | Self::ReportingPrimary(_) => "a primary",
            Self::Replica(_) => "a replica in step with its primary",
        }
    }

    /// Processes the report of the server at `address`. For a primary, records the report in
    /// `members` and, if this role has a replication progress, in the progress. For a replica,
    /// checks that it keeps up with the primary. Returns an error if the server may not be used.
    fn read_replication(
        &self,
        address: &str,
        server_report: &ServerReport,
        members: &Members,
    ) -> Result<(), LinkError> {
        match (self, &server_report.replication) {
            (Self::Primary, _) | (Self::ReportingPrimary(_), None) => {}
            (Self::ReportingPrimary(progress), Some(replication)) => {
                // A server that must not be charged has no offset that replicas must reach.
                members.record_report(address, server_report)?;
                progress.observe(replication, server_report.at);
                return Ok(());
            }
            (Self::Replica(progress), Some(replication)) => {
                return progress
                    .check(replication, server_report.at)
                    .map_err(|lag| LinkError::Lags { address: address.to_owned(), lag });
            }
            (Self::Replica(_), None) => {
                let (address, lag) = (address.to_owned(), Lag::Unreported);
                return Err(LinkError::Lags { address, lag });
            }
        }
        members.record_report(address, server_report)
    }

    /// Returns whether nodes charge a server in this role.
    pub(crate) fn charges(&self) -> bool {
        !matches!(self, Self::Replica(_))
    }
}

/// Connects to `endpoint` and returns the connection and the server's report. Verifies that the
/// server has the required role and that `members` permits charges on the server. Then prepares the
/// server for the commands of `codec`.
pub(super) async fn connect<C: Codec>(
    endpoint: &Endpoint,
    required_role: &RequiredRole,
    members: &Members,
    codec: &C,
    limits: ConnectLimits,
    generation: u64,
) -> Result<(Connection, ServerReport), LinkError> {
    let address = endpoint.to_string();
    let prepare = async {
        let connection = open(endpoint, generation, Pushes::Ignored).await?;
        members.settled().await;
        // The server is verified before anything is loaded, so a server with the wrong role is not
        // changed.
        let server_report = probe(&connection, required_role, members, limits.proof).await?;
        codec
            .load(&mut connection.handle())
            .await
            .map_err(|error| LinkError::answered(&address, "the loading of the step", &error))?;
        Ok((connection, server_report))
    };
    let slow = |_| LinkError::Slow { address: address.clone(), within: limits.connect };
    timeout(limits.connect, prepare).await.map_err(slow)?
}

/// Queries the server as [`Connection::query`] does. Checks that the server has the role
/// `required_role` and that `members` permits charges on the server.
pub(super) async fn probe(
    connection: &Connection,
    required_role: &RequiredRole,
    members: &Members,
    within: Duration,
) -> Result<ServerReport, LinkError> {
    let server_report = connection.query(within).await?;
    if !required_role.accepts(server_report.role) {
        if required_role.charges() {
            // Other connections may use this server as the primary, so they also need the report
            // with the wrong role.
            let _ = members.record_report(connection.address(), &server_report);
        }
        return Err(LinkError::Role {
            address: connection.address().to_owned(),
            found: server_report.role.name(),
            wanted: required_role.name(),
        });
    }
    required_role.read_replication(connection.address(), &server_report, members)?;
    Ok(server_report)
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tollgate_link::LinkLimits;

    use super::*;
    use crate::connection::{EpochMark, Replication};

    fn reported(replication: Replication) -> ServerReport {
        ServerReport {
            role: Role::Primary,
            clock: None,
            replication: Some(replication),
            mark: EpochMark::Present(0),
            at: Instant::now(),
        }
    }

    /// Otherwise no replica of the new primary would have the replication id of the last report.
    #[test]
    fn the_offset_of_a_replaced_primary_is_not_recorded() {
        let servers = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
        let servers = servers.map(|url| url.parse::<Endpoint>().unwrap());
        let addresses = servers.clone().map(|server| server.to_string());
        let members = Members::of(servers.into(), &LinkLimits::default());
        let progress = Arc::<ReplicationProgress>::default();
        let role = RequiredRole::ReportingPrimary(Arc::clone(&progress));
        let new = reported(Replication::leading("new", 9, Some(("old", 5))));
        role.read_replication(&addresses[1], &new, &members).unwrap();
        let old = reported(Replication::leading("old", 7, None));
        role.read_replication(&addresses[0], &old, &members).unwrap_err();
        let replica = Replication::following("new", 9);
        assert_eq!(progress.check(&replica, Instant::now()), Ok(()));
    }
}
