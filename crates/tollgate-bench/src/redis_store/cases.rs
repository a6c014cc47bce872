//! The cases: every number of callers, with one hot key and with many, on one limit and on four.
//! The contenders take turns, so disturbances from other processes affect both.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::closed_loop::{Load, Round, run};
use super::contender::{Contender, LIMITS};
use super::server::Server;
use super::shard::Shard;
use super::two_keys::TwoKeys;
use crate::draw;

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How often each case is measured.
    pub rounds: usize,
    /// The decisions of a round with one caller.
    pub decisions_alone: usize,
    /// The decisions of a round with many callers.
    pub decisions: usize,
    /// The number of subjects in the cases with many.
    pub subjects: u32,
    /// The quota of every limit.
    pub quota: u64,
}

impl Scale {
    /// For measurements: every charge is admitted.
    pub const FULL: Self = Self {
        rounds: 11,
        decisions_alone: 10_000,
        decisions: 50_000,
        subjects: 100_000,
        quota: 500_000,
    };
    /// A small size, to check that the measurement works: the hot keys use up their quota.
    pub const QUICK: Self =
        Self { rounds: 2, decisions_alone: 300, decisions: 1_000, subjects: 100, quota: 200 };
}

/// The subjects that are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// One, which no earlier round charged.
    Hot,
    /// Many, uniformly distributed, with open windows.
    Many,
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The number of concurrent callers.
    pub callers: usize,
    /// The subjects that the callers charge.
    pub keys: Keys,
    /// The number of limits that each request charges.
    pub limits: usize,
}

impl Case {
    /// Returns all cases, in the order of the report.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = [
            (Keys::Hot, 1),
            (Keys::Many, 1),
            (Keys::Hot, LIMITS.len()),
            (Keys::Many, LIMITS.len()),
        ];
        kinds
            .into_iter()
            .flat_map(|(keys, limits)| [1, 64, 512].map(|callers| Self { callers, keys, limits }))
    }
}

/// The results of the contenders in all rounds of one case.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// The rounds of the two-key script.
    pub two_keys: Vec<Round>,
    /// The rounds of the store.
    pub tollgate: Vec<Round>,
}

/// The contenders, on one server.
#[derive(Debug)]
pub struct Contest {
    /// The server of both contenders.
    pub server: Server,
    /// The script, called once for each decision.
    pub two_keys: Arc<TwoKeys>,
    /// The store.
    pub tollgate: Arc<Shard>,
}

impl Contest {
    /// Connects both contenders to `server`, with one connection each.
    ///
    /// # Errors
    /// The error of the contender that could not connect.
    pub async fn new(server: Server, scale: &Scale) -> Result<Self, Box<dyn Error>> {
        let url = server.url();
        let two_keys = Arc::new(TwoKeys::connect(&url, scale.quota).await?);
        let tollgate = Arc::new(Shard::connect(&url, scale.quota).await?);
        Ok(Self { server, two_keys, tollgate })
    }

    /// Opens the windows of all subjects for both contenders, as after the first requests of a day.
    ///
    /// # Errors
    /// The first error of a contender.
    pub async fn open_windows(&self, scale: &Scale) -> Result<(), Box<dyn Error>> {
        let order = draw::each(scale.subjects, 1).into();
        let load = Load { callers: 64, limits: LIMITS.len(), order };
        run(&self.two_keys, &load, &self.server).await?;
        run(&self.tollgate, &load, &self.server).await?;
        Ok(())
    }

    /// Measures `case`, which is number `number` of the run.
    ///
    /// # Errors
    /// The first error of a contender, or if the two admitted different numbers of requests.
    pub async fn measure(
        &self,
        number: usize,
        case: Case,
        scale: &Scale,
    ) -> Result<Measured, Box<dyn Error>> {
        let mut measured = Measured { case, two_keys: Vec::new(), tollgate: Vec::new() };
        for round in 0..scale.rounds {
            let load = load(case, scale, number * scale.rounds + round);
            // The contender that starts changes from round to round.
            if round % 2 == 0 {
                measured.two_keys.push(run(&self.two_keys, &load, &self.server).await?);
                measured.tollgate.push(run(&self.tollgate, &load, &self.server).await?);
            } else {
                measured.tollgate.push(run(&self.tollgate, &load, &self.server).await?);
                measured.two_keys.push(run(&self.two_keys, &load, &self.server).await?);
            }
            check(&measured)?;
        }
        Ok(measured)
    }

    /// Returns the names of the contenders, in the order of [`Measured`].
    #[must_use]
    pub fn names(&self) -> [&'static str; 2] {
        [self.two_keys.name(), self.tollgate.name()]
    }
}

/// Returns the requests of round number `turn` of a run.
fn load(case: Case, scale: &Scale, turn: usize) -> Load {
    let decisions = if case.callers == 1 { scale.decisions_alone } else { scale.decisions };
    let order = match case.keys {
        Keys::Hot => vec![scale.subjects + turn as u32; decisions],
        Keys::Many => draw::uniform(scale.subjects, decisions, turn as u64),
    };
    Load { callers: case.callers, limits: case.limits, order: order.into() }
}

/// Checks that both contenders admitted the same number of requests: otherwise they did not do the
/// same work.
fn check(measured: &Measured) -> Result<(), Disagreement> {
    match (measured.two_keys.last(), measured.tollgate.last()) {
        (Some(theirs), Some(ours)) if theirs.admitted != ours.admitted => Err(Disagreement {
            case: measured.case,
            two_keys: theirs.admitted,
            tollgate: ours.admitted,
        }),
        _ => Ok(()),
    }
}

/// The error that the contenders admitted different numbers of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    case: Case,
    two_keys: usize,
    tollgate: usize,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, two_keys, tollgate } = self;
        write!(f, "in {case:?} two keys admitted {two_keys} requests, tollgate {tollgate}")
    }
}

impl Error for Disagreement {}
