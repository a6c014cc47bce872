//! The cases of the benchmark. They differ in the number of callers, in the number of subjects (one
//! hot key or many keys), and in the number of limits (one or four). The contenders are measured
//! alternately, so disturbances by other processes affect all of them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use tollgate_redis::RuntimeChoice;

use super::cell::Cell;
use super::closed_loop::{Load, Round, run};
use super::contender::{Contender, LIMITS};
use super::server::Server;
use super::shard::Shard;
use super::two_keys::TwoKeys;
use crate::draw;

/// The number of rounds, decisions and subjects in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number of rounds in which each case is measured.
    pub rounds: usize,
    /// The number of decisions in a round with one caller.
    pub decisions_alone: usize,
    /// The number of decisions in a round with many callers.
    pub decisions: usize,
    /// The number of subjects in the cases with many subjects.
    pub subjects: u32,
    /// The quota of every limit.
    pub quota: u64,
}

impl Scale {
    /// The scale for measurements. Every charge is admitted.
    pub const FULL: Self = Self {
        rounds: 11,
        decisions_alone: 10_000,
        decisions: 50_000,
        subjects: 100_000,
        quota: 500_000,
    };
    /// A small scale, to check that the measurement works. The hot keys use up their quota.
    pub const QUICK: Self =
        Self { rounds: 2, decisions_alone: 300, decisions: 1_000, subjects: 100, quota: 200 };
}

/// Which subjects the callers of a case charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// One subject. Each round charges a new subject, which has not been charged before.
    Hot,
    /// Many subjects, which are charged with the same probability. The windows of all subjects are
    /// open before the measurement.
    Many,
}

/// One case of the benchmark.
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

/// The results of all contenders in one case, by round.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// The results of the two-key script, one for each round.
    pub two_keys: Vec<Round>,
    /// The results of redis-cell, one for each round. Empty if redis-cell is not measured.
    pub cell: Vec<Round>,
    /// For each form of Tollgate's store, the results of all rounds.
    pub tollgate: Vec<Vec<Round>>,
}

/// The contenders of a run, with their servers.
#[derive(Debug)]
pub struct ComparedContenders {
    /// The server of all contenders except redis-cell.
    pub server: Server,
    /// The two-key script, which is called once for each decision.
    pub two_keys: Arc<TwoKeys>,
    /// redis-cell with a server of its own, if redis-cell is measured.
    pub cell: Option<Arc<Cell>>,
    /// Tollgate's store in each form that is measured: with the function, and with the module.
    pub tollgate: Vec<Arc<Shard>>,
}

/// The forms of Tollgate's store, with their names in the report. The first form uses the function.
/// The other forms use the module, and are measured only if the server has loaded the module.
const FORMS: [(&str, RuntimeChoice); 3] = [
    ("tollgate", RuntimeChoice::Function),
    ("module", RuntimeChoice::Best),
    ("module, tables", RuntimeChoice::Tables),
];

impl ComparedContenders {
    /// Connects all contenders to `server`, with one connection each. If `has_module` is set, the
    /// forms that use the module are included. If there is a server with redis-cell, redis-cell is
    /// included.
    ///
    /// # Errors
    /// The error of the contender that could not connect.
    pub async fn new(
        server: Server,
        cell: Option<Server>,
        scale: &Scale,
        has_module: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let url = server.url();
        let two_keys = Arc::new(TwoKeys::connect(&url, scale.quota).await?);
        let mut tollgate = Vec::new();
        for (name, choice) in &FORMS[..if has_module { FORMS.len() } else { 1 }] {
            tollgate.push(Arc::new(Shard::connect(name, &url, *choice, scale.quota).await?));
        }
        let cell = match cell {
            Some(server) => Some(Arc::new(Cell::connect(server, scale.quota).await?)),
            None => None,
        };
        Ok(Self { server, two_keys, cell, tollgate })
    }

    /// Charges all subjects through all contenders once. After that, all windows are open, as after
    /// the first requests of a day.
    ///
    /// # Errors
    /// The first error of a contender.
    pub async fn open_windows(&self, scale: &Scale) -> Result<(), Box<dyn Error>> {
        let order = draw::each(scale.subjects, 1).into();
        let load = Load { callers: 64, limits: LIMITS.len(), order };
        run(&self.two_keys, &load, &self.server).await?;
        if let Some(cell) = &self.cell {
            run(cell, &load, &cell.server).await?;
        }
        for form in &self.tollgate {
            run(form, &load, &self.server).await?;
        }
        Ok(())
    }

    /// Measures all contenders in `case`. `number` is the index of the case in the run, which
    /// selects the subjects of its rounds.
    pub async fn measure(
        &self,
        number: usize,
        case: Case,
        scale: &Scale,
    ) -> Result<Measured, Box<dyn Error>> {
        let tollgate = vec![Vec::new(); self.tollgate.len()];
        let (two_keys, cell) = (Vec::new(), Vec::new());
        let mut measured = Measured { case, two_keys, cell, tollgate };
        for round in 0..scale.rounds {
            let load = load(case, scale, number * scale.rounds + round);
            // In every second round, the two-key script is measured first. In the other rounds, it
            // is measured last.
            if round % 2 == 0 {
                measured.two_keys.push(run(&self.two_keys, &load, &self.server).await?);
            }
            if let Some(cell) = &self.cell {
                measured.cell.push(run(cell, &load, &cell.server).await?);
            }
            for (form, rounds) in self.tollgate.iter().zip(&mut measured.tollgate) {
                rounds.push(run(form, &load, &self.server).await?);
            }
            if round % 2 == 1 {
                measured.two_keys.push(run(&self.two_keys, &load, &self.server).await?);
            }
            check(&measured)?;
        }
        Ok(measured)
    }

    /// Returns the names of the contenders, the two-key script first.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let cell = self.cell.iter().map(|cell| cell.name());
        let forms = self.tollgate.iter().map(|form| form.name());
        [self.two_keys.name()].into_iter().chain(cell).chain(forms).collect()
    }
}

/// Returns the requests of a round. The round has the number `turn` in the run.
fn load(case: Case, scale: &Scale, turn: usize) -> Load {
    let decisions = if case.callers == 1 { scale.decisions_alone } else { scale.decisions };
    let order = match case.keys {
        Keys::Hot => vec![scale.subjects + turn as u32; decisions],
        Keys::Many => draw::uniform(scale.subjects, decisions, turn as u64),
    };
    Load { callers: case.callers, limits: case.limits, order: order.into() }
}

/// Checks that all contenders admitted the same number of requests. If not, they did different
/// work, and the comparison would have no meaning.
fn check(measured: &Measured) -> Result<(), Disagreement> {
    let theirs = measured.two_keys.last().map(|round| round.admitted);
    let others = [&measured.cell].into_iter().chain(&measured.tollgate);
    for other in others.filter_map(|rounds| rounds.last()).map(|round| round.admitted) {
        if let Some(two_keys) = theirs
            && two_keys != other
        {
            return Err(Disagreement { case: measured.case, two_keys, other });
        }
    }
    Ok(())
}

/// The error for contenders that admitted different numbers of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    case: Case,
    two_keys: usize,
    other: usize,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, two_keys, other } = self;
        write!(f, "in {case:?} two keys admitted {two_keys} requests, another one {other}")
    }
}

impl Error for Disagreement {}
