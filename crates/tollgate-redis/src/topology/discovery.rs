//! Queries the roles of a shard's servers periodically.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollgate_link::LinkLimits;

use crate::connection::{Connection, Endpoint, LinkError, Pushes, ServerReport, open};
use crate::members::Members;

/// The shortest time between two queries to one server.
const LEAST_PERIOD: Duration = Duration::from_millis(1);

/// Queries the role of every server of a member list periodically, until this value is dropped.
///
/// The queries detect a promoted replica even if the old primary still answers. The queries use
/// connections of their own, which carry no charges and stay open when other connections are
/// replaced.
#[derive(Debug)]
pub(crate) struct ServerDiscovery(AbortHandle);

impl ServerDiscovery {
    /// Starts to query the servers of `members`. Needs a tokio runtime.
    pub(crate) fn start(members: Arc<Members>, limits: LinkLimits) -> Self {
        Self(tokio::spawn(take(members, limits)).abort_handle())
    }
}

impl Drop for ServerDiscovery {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a task for each server of the member list. Starts and stops tasks when the list changes.
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

/// Queries one server at intervals of [`LinkLimits::discovery_period`], and whenever `members`
/// requests a query. Records each report, or the missing answer, in `members`.
async fn visit(server: Endpoint, members: Arc<Members>, limits: LinkLimits) {
    let address = server.to_string();
    let mut inquiries = members.probe_requests();
    let mut periods = interval(limits.discovery_period().max(LEAST_PERIOD));
    periods.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut connection = None;
    loop {
        tokio::select! {
            biased;
            _ = periods.tick() => {}
            Ok(()) = inquiries.changed() => {}
        }
        connection = match query(connection, &server, limits).await {
            Ok((connection, server_report)) => {
                // An error of this check matters only to connections that charge the server.
                let _ = members.record_report(&address, &server_report);
                Some(connection)
            }
            Err(_) => {
                members.record_unreachable(&address);
                None
            }
        };
    }
}

/// Queries the report of `server` on `connection`, and returns both. If there is no connection, or
/// the connection has ended, opens a new connection first.
///
/// If the connection ends during the query, queries once more on a new connection. The end of a
/// connection does not show that the server cannot be reached, and a server that cannot be reached
/// may be replaced by an empty server.
async fn query(
    connection: Option<Connection>,
    server: &Endpoint,
    limits: LinkLimits,
) -> Result<(Connection, ServerReport), LinkError> {
    if let Some(connection) = connection.filter(|connection| !connection.has_ended()) {
        match connection.query(limits.heartbeat_answer).await {
            Ok(server_report) => return Ok((connection, server_report)),
            Err(LinkError::Closed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let slow = |_| LinkError::Slow { address: server.to_string(), within: limits.connect };
    let opened = async {
        let connection = open(server, 0, Pushes::Ignored).await?;
        let server_report = connection.query(limits.connect).await?;
        Ok((connection, server_report))
    };
    timeout(limits.connect, opened).await.map_err(slow)?
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Answers commands like an empty primary. Closes the connection when the command `ROLE`
    /// arrives for the time with the number `last`.
    async fn serve(mut stream: TcpStream, last: usize) {
        let (mut queries, mut bytes) = (0, [0; 1024]);
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            let received = String::from_utf8_lossy(&bytes[..count]).into_owned();
            for command in received.split('*').skip(1) {
                let name = command.split("\r\n").nth(2).unwrap_or_default();
                queries += usize::from(name == "ROLE");
                if queries >= last {
                    return;
                }
                let reply = match name {
                    "ROLE" => "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
                    "TIME" => "*2\r\n$1\r\n1\r\n$1\r\n0\r\n",
                    "INFO" => "$0\r\n\r\n",
                    "MGET" => "*2\r\n$-1\r\n$-1\r\n",
                    _ => "+OK\r\n",
                };
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_closes_a_connection_is_queried_on_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("redis://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            for last in [2, usize::MAX] {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, last));
            }
        });
        let minute = Duration::from_secs(60);
        let limits =
            LinkLimits { connect: minute, heartbeat_answer: minute, ..LinkLimits::default() };
        let (connection, _) = query(None, &server, limits).await.unwrap();
        query(Some(connection), &server, limits).await.expect("the second connection");
    }
}
