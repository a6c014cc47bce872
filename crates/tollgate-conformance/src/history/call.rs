//! What is recorded: calls in real time, and what each was told.

use tollgate_core::{Charge, Limit, Operation, Readings, Subject, Timestamp};

/// A place in the real time of one history: of two moments the later has the larger number.
///
/// A counter serves as well as a clock, as long as all callers share it.
pub type Moment = u64;

/// The moment of what has not happened yet.
pub const NEVER: Moment = Moment::MAX;

/// One charge of a call, kept.
#[derive(Clone, Debug)]
pub struct RecordedCharge {
    /// The limit.
    pub limit: Limit,
    /// Who is limited.
    pub subject: Subject,
    /// What to do.
    pub operation: Operation,
}

impl From<&Charge<'_>> for RecordedCharge {
    fn from(charge: &Charge<'_>) -> Self {
        Self {
            limit: charge.limit.clone(),
            subject: charge.subject.clone(),
            operation: charge.operation,
        }
    }
}

/// What became of a call.
#[derive(Clone, Debug, Default)]
pub enum Outcome {
    /// Its readings, in the order of its charges. Where what is recorded does not say what was
    /// found (an HTTP answer does not), that is state if anything is used, else nothing.
    Answered(Readings),
    /// Nobody heard: it was carried out whole, or not at all.
    #[default]
    Unknown,
    /// It certainly was not carried out, and will not be.
    NotCarriedOut,
}

/// One call of a store, or one request of a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// Before anything was sent.
    pub issued: Moment,
    /// After its answer was there, or the news that there is none; [`NEVER`] if the caller left.
    pub answered: Moment,
    /// The time by which it was decided: the caller's.
    pub now: Timestamp,
    /// What was asked.
    pub charges: Vec<RecordedCharge>,
    /// What was told.
    pub outcome: Outcome,
}

/// A stretch of real time in which the store lost its whole state: it was killed or flushed. What a
/// replica that took over had not heard of is an [`Allowance`](super::Allowance) instead.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Before anything was lost.
    pub from: Moment,
    /// After the last of it; [`NEVER`] if it is not over.
    pub until: Moment,
}

/// Calls, and the losses that the world is to blame for.
///
/// Made by a [`Recorder`](super::Recorder), or by hand of what was recorded elsewhere.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In any order.
    pub calls: Vec<Call>,
    /// Each ends every window early.
    pub losses: Vec<Loss>,
    /// Each takes along what the store counted last: a window that was opened in it is gone, and
    /// what was charged to others in it may be. How many units, an [`Allowance`](super::Allowance)
    /// says.
    pub cuts: Vec<Loss>,
    /// Calls that were made and are not here: with any of them nothing can be said.
    pub unrecorded: u64,
}
