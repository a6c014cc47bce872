//! The recorded data: calls in real time, and their outcomes.

use tollgate_core::{Charge, Limit, Operation, Readings, Subject, Timestamp};

/// A point in the real time of one history. A later point has a larger number.
///
/// A counter is sufficient, if all callers share it.
pub type Moment = u64;

/// The moment of an event that has not happened.
pub const NEVER: Moment = Moment::MAX;

/// One recorded charge of a call.
#[derive(Clone, Debug)]
pub struct RecordedCharge {
    /// The limit.
    pub limit: Limit,
    /// The subject.
    pub subject: Subject,
    /// The operation.
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

/// The outcome of a call.
#[derive(Clone, Debug, Default)]
pub enum Outcome {
    /// The call was answered with these readings, in the order of its charges. If the record does
    /// not contain whether state was found (an HTTP response does not), it counts as found if any
    /// units are used.
    Answered(Readings),
    /// No answer arrived: the call was executed completely, or not at all.
    #[default]
    Unknown,
    /// The call was certainly not executed, and will not be.
    NotCarriedOut,
}

/// One call to a store, or one request to a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// Before anything was sent.
    pub issued: Moment,
    /// After the answer or the error arrived, or [`NEVER`] if the caller stopped waiting.
    pub answered: Moment,
    /// The caller's time, by which the call was decided.
    pub now: Timestamp,
    /// The charges.
    pub charges: Vec<RecordedCharge>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A period of real time in which the store lost its complete state: it was killed or flushed.
/// Charges that a promoted replica had not received are an [`Allowance`](super::Allowance) instead.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The last moment before which nothing was lost.
    pub from: Moment,
    /// The first moment after which nothing more was lost, or [`NEVER`] if the loss has not ended.
    pub until: Moment,
}

/// The calls, and the losses that the environment caused.
///
/// It is created by a [`Recorder`](super::Recorder), or by hand from other records.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The calls, in any order.
    pub calls: Vec<Call>,
    /// The losses. Each ends every window early.
    pub losses: Vec<Loss>,
    /// The cuts. Each loses the latest charges of the store: a window that was opened during the
    /// cut is gone, and charges to other windows during the cut may be. An
    /// [`Allowance`](super::Allowance) contains the number of units.
    pub cuts: Vec<Loss>,
    /// The number of calls that were made but not recorded. If there are any, the history cannot be
    /// checked.
    pub unrecorded: u64,
}
