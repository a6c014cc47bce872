//! What is compared: a listener, how it is asked, and who is behind it.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::contender::{Contender, Programs};
use super::load::{Load, LoadError};
use crate::draw;
use crate::server::Server;

/// Subjects, each as likely as any other.
const SUBJECTS: u32 = 100_000;

/// A listener, and two who have it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// Connections.
    pub connections: usize,
    /// Requests of one connection that wait at once.
    pub in_flight: usize,
    /// Who is measured.
    pub ours: Contender,
    /// Who it is held against.
    pub peer: Contender,
    /// At most so much of the peer's processor time is aimed at; nothing of what only shows where
    /// the bottom is.
    pub aim: Option<f64>,
}

/// Every case.
pub const CASES: [Case; 8] = [
    Case {
        name: "HTTP, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateHttp,
        peer: Contender::ThrottlecrabHttp,
        aim: Some(0.75),
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
        aim: Some(0.75),
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
        aim: Some(0.34),
    },
    Case {
        name: "proxy, one in flight",
        connections: 50,
        in_flight: 1,
        ours: Contender::TollgateProxy,
        peer: Contender::BareProxy,
        aim: Some(1.15),
    },
];

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How often each contender is.
    pub rounds: usize,
    /// Decisions of a round.
    pub decisions: usize,
}

impl Scale {
    /// What the documentation shows.
    pub const FULL: Self = Self { rounds: 9, decisions: 50_000 };
    /// A few of everything, to see that it works.
    pub const QUICK: Self = Self { rounds: 1, decisions: 400 };
}

/// What one server did in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Requests that were answered.
    pub decisions: usize,
    /// From the first request to the last answer.
    pub wall: Duration,
    /// The server's processor time meanwhile.
    pub server: Duration,
}

/// The rounds of both contenders of a case.
#[derive(Debug, Default)]
pub struct Measured {
    /// Of ours.
    pub ours: Vec<Round>,
    /// Of the peer's.
    pub peer: Vec<Round>,
}

impl Case {
    /// Measures both in turns.
    ///
    /// # Errors
    /// If a server cannot be started or asked, or refuses what it should admit.
    pub async fn measure(&self, programs: &Programs, scale: Scale) -> Result<Measured, LoadError> {
        let start = |who: Contender| Server::start(|port| who.command(programs, port));
        let (ours, peer) = (start(self.ours)?, start(self.peer)?);
        // The first round finds every bucket missing, and every buffer small.
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

    /// Subjects of a round, the same for both.
    #[must_use]
    pub fn subjects(&self, round: usize, count: usize) -> Arc<[u32]> {
        draw::uniform(SUBJECTS, count, round as u64).into()
    }

    /// Asks `who`, which listens at `address`, for all of `subjects`.
    ///
    /// # Errors
    /// As [`Load::run`]; and if it refuses anything.
    pub async fn ask(
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
        let (before, begun) = (server.processor_time()?, Instant::now());
        self.ask(who, server.address(), subjects).await?;
        let wall = begun.elapsed();
        let server = server.processor_time()?.saturating_sub(before);
        Ok(Round { decisions: subjects.len(), wall, server })
    }
}
