//! The cases of the benchmark. A case has a listener, its load, and two contenders that are
//! compared: usually Tollgate and a peer.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::contender::{Contender, Programs};
use super::load::{Load, LoadError};
use crate::draw;
use crate::server::Server;

/// The number of subjects, which are uniformly distributed.
const SUBJECTS: u32 = 100_000;

/// A listener of Tollgate that is compared with a peer.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The number of connections.
    pub connections: usize,
    /// The number of requests that are pending on each connection at a time.
    pub in_flight: usize,
    /// The contender that is measured: Tollgate, or [`Contender::BareAnswer`] in the case that
    /// shows the lower bound.
    pub ours: Contender,
    /// The peer that is measured for comparison.
    pub peer: Contender,
    /// The largest accepted ratio of the measured contender's processor time to the peer's
    /// processor time. `None` for a case that only shows the lower bound.
    pub aim: Option<f64>,
}

/// Every case.
pub const CASES: [Case; 13] = [
    Case {
        name: "HTTP, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateHttp,
        peer: Contender::ThrottlecrabHttp,
        aim: Some(0.75),
    },
    Case {
        name: "HTTP, 16 in flight",
        connections: 50,
        in_flight: 16,
        ours: Contender::TollgateHttp,
        peer: Contender::ThrottlecrabHttp,
        aim: Some(0.5),
    },
    Case {
        name: "HTTP/2, 64 in flight",
        connections: 4,
        in_flight: 64,
        ours: Contender::TollgateHttp2,
        peer: Contender::ThrottlecrabHttp2,
        aim: Some(0.5),
    },
    Case {
        name: "HTTP, minimal answers",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateHttpMinimal,
        peer: Contender::ThrottlecrabHttp,
        aim: Some(0.75),
    },
    Case {
        name: "HTTP, without deciding",
        connections: 50,
        in_flight: 1,
        ours: Contender::BareAnswer,
        peer: Contender::ThrottlecrabHttp,
        aim: None,
    },
    Case {
        name: "gRPC, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateGrpc,
        peer: Contender::ThrottlecrabGrpc,
        aim: Some(0.75),
    },
    Case {
        name: "gRPC, 64 in flight",
        connections: 4,
        in_flight: 64,
        ours: Contender::TollgateGrpc,
        peer: Contender::ThrottlecrabGrpc,
        aim: Some(0.65),
    },
    Case {
        name: "RESP, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateResp,
        peer: Contender::ThrottlecrabResp,
        aim: Some(0.75),
    },
    Case {
        name: "RESP, 16 in flight",
        connections: 50,
        in_flight: 16,
        ours: Contender::TollgateResp,
        peer: Contender::ThrottlecrabResp,
        aim: Some(0.33),
    },
    Case {
        name: "RESP, 64 in flight",
        connections: 50,
        in_flight: 64,
        ours: Contender::TollgateResp,
        peer: Contender::ThrottlecrabResp,
        aim: Some(0.25),
    },
    Case {
        name: "proxy, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateProxy,
        peer: Contender::BareProxy,
        aim: Some(1.1),
    },
    Case {
        name: "proxy, compared with nginx",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateProxy,
        peer: Contender::Nginx,
        aim: Some(1.2),
    },
    Case {
        name: "proxy, compared with HAProxy",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateProxy,
        peer: Contender::Haproxy,
        aim: Some(1.2),
    },
];

/// The number of rounds and decisions in a run.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The number of rounds in which each contender is measured.
    pub rounds: usize,
    /// The number of decisions in a round.
    pub decisions: usize,
}

impl Scale {
    /// The scale with which the numbers in the documentation are measured.
    pub const FULL: Self = Self { rounds: 9, decisions: 50_000 };
    /// A small scale, to check that the measurement works.
    pub const QUICK: Self = Self { rounds: 1, decisions: 400 };
}

/// The result of one contender in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The number of answered requests.
    pub decisions: usize,
    /// The time from the first request to the last answer.
    pub wall: Duration,
    /// The processor time that the server used from the first request to the last answer.
    pub server: Duration,
    /// The part of `server` that was spent in the kernel, in steps of a hundredth of a second.
    pub kernel: Duration,
}

/// The results of both contenders of a case, by round.
#[derive(Debug, Default)]
pub struct Measured {
    /// The results of [`Case::ours`].
    pub ours: Vec<Round>,
    /// The results of [`Case::peer`].
    pub peer: Vec<Round>,
}

impl Case {
    /// Measures both contenders of the case alternately.
    ///
    /// # Errors
    /// If a server cannot be started or called, or refuses a request that it should admit.
    pub async fn measure(&self, programs: &Programs, scale: Scale) -> Result<Measured, LoadError> {
        let start = |who: Contender| Server::start(|port| who.command(programs, port));
        let (ours, peer) = (start(self.ours)?, start(self.peer)?);
        // The first round is not measured: the buckets of its subjects do not exist yet, and the
        // buffers still have to grow.
        let warm = self.subjects(usize::MAX, scale.decisions);
        self.round(self.ours, &ours, &warm).await?;
        self.round(self.peer, &peer, &warm).await?;
        let mut measured = Measured::default();
        for round in 0..scale.rounds {
            let subjects = self.subjects(round, scale.decisions);
            measured.peer.push(self.round(self.peer, &peer, &subjects).await?);
            measured.ours.push(self.round(self.ours, &ours, &subjects).await?);
        }
        Ok(measured)
    }

    /// Returns `count` subjects for a round. Both contenders use the same subjects.
    #[must_use]
    pub fn subjects(&self, round: usize, count: usize) -> Arc<[u32]> {
        draw::uniform(SUBJECTS, count, round as u64).into()
    }

    /// Sends a request for each of `subjects` to the contender `who`, which listens at `address`.
    ///
    /// # Errors
    /// As for [`Load::run`]. Also returns an error if a request is refused.
    pub async fn send(
        &self,
        who: Contender,
        address: SocketAddr,
        subjects: &Arc<[u32]>,
    ) -> Result<(), LoadError> {
        let (connections, in_flight) = (self.connections, self.in_flight);
        let load = Load { address, wire: who.wire(), connections, in_flight };
        let admitted = load.run(subjects).await;
        let admitted = admitted.map_err(|error| format!("{}, {who}: {error}", self.name))?;
        match subjects.len() - admitted {
            0 => Ok(()),
            refused => Err(format!("{}, {who}: refused {refused}", self.name).into()),
        }
    }

    async fn round(
        &self,
        who: Contender,
        server: &Server,
        subjects: &Arc<[u32]>,
    ) -> Result<Round, Box<dyn Error + Send + Sync>> {
        let (before, kernel_before) = (server.processor_time()?, server.kernel_time()?);
        let started = Instant::now();
        self.send(who, server.address(), subjects).await?;
        let wall = started.elapsed();
        let kernel = server.kernel_time()?.saturating_sub(kernel_before);
        let server = server.processor_time()?.saturating_sub(before);
        Ok(Round { decisions: subjects.len(), wall, server, kernel })
    }
}
