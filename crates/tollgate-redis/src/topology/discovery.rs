//! Asks every server of a shard who it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::members::Members;
use crate::link::{Connection, Endpoint, LinkError, LinkLimits, Pushes, ServerReport, open};

/// The least time between two questions to one server.
const LEAST_PERIOD: Duration = Duration::from_millis(1);

/// Asks every server of a member list who it is, again and again until it is dropped.
///
/// A replica that was promoted is seen so while the old primary still answers, over a connection
/// of its own: one that nobody charges, and that stays open while others come and go.
#[derive(Debug)]
pub(crate) struct ServerDiscovery(AbortHandle);

impl ServerDiscovery {
    /// Begins to ask the servers of `members`. Needs a tokio runtime.
    pub(crate) fn start(members: Arc<Members>, limits: LinkLimits) -> Self {
        Self(tokio::spawn(take(members, limits)).abort_handle())
    }
}

impl Drop for ServerDiscovery {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Has one visitor for each server that there is.
async fn take(members: Arc<Members>, limits: LinkLimits) {
    let mut view = members.view();
    let (mut visitors, mut visited) = (JoinSet::new(), BTreeMap::<Box<str>, AbortHandle>::new());
    loop {
        let servers = Arc::clone(&view.borrow_and_update().servers);
        let addresses: BTreeMap<Box<str>, &Endpoint> =
            servers.iter().map(|server| (server.to_string().into(), server)).collect();
        visited.retain(|address, visitor| {
            let stays = addresses.contains_key(address);
            if !stays {
                visitor.abort();
            }
            stays
        });
        for (address, server) in addresses {
            let visit = || visitors.spawn(visit(server.clone(), Arc::clone(&members), limits));
            visited.entry(address).or_insert_with(visit);
        }
        while visitors.try_join_next().is_some() {}
        if view.changed().await.is_err() {
            return;
        }
    }
}

/// Asks one server, in each period and whenever there is reason to.
async fn visit(server: Endpoint, members: Arc<Members>, limits: LinkLimits) {
    let address = server.to_string();
    let mut inquiries = members.probe_requests();
    let mut periods = interval(limits.discovery_period().max(LEAST_PERIOD));
    periods.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut connection = None;
    loop {
        tokio::select! {
            _ = periods.tick() => {}
            Ok(()) = inquiries.changed() => {}
        }
        connection = match ask(connection, &server, limits).await {
            Ok((connection, server_report)) => {
                // Whether it may be charged is for those who charge it.
                let _ = members.record_report(
                    &address,
                    server_report.role,
                    server_report.replication.as_ref(),
                    server_report.at,
                );
                Some(connection)
            }
            Err(_) => None,
        };
    }
}

/// Asks over `connection`, or over another one if it is of no use.
async fn ask(
    connection: Option<Connection>,
    server: &Endpoint,
    limits: LinkLimits,
) -> Result<(Connection, ServerReport), LinkError> {
    if let Some(connection) = connection.filter(|connection| !connection.has_ended()) {
        let server_report = connection.ask(limits.heartbeat_answer).await?;
        return Ok((connection, server_report));
    }
    let slow = |_| LinkError::Slow { address: server.to_string(), within: limits.connect };
    let opened = async {
        let connection = open(server, 0, Pushes::Ignored).await?;
        let server_report = connection.ask(limits.connect).await?;
        Ok((connection, server_report))
    };
    timeout(limits.connect, opened).await.map_err(slow)?
}
