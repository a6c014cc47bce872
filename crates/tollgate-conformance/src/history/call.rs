//! The recorded data: calls with their moments in real time, and their outcomes.

use tollgate_core::{Charge, Limit, Operation, Readings, Subject, Timestamp};

/// A point in the real time of one history. A later point has a larger number.
///
/// A counter that all callers share is a sufficient source of moments.
pub type Moment = u64;

/// The moment of an event that never happens.
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
    /// The call was answered with these readings, in the order of its charges. Some records, such
    /// as HTTP responses, do not contain whether state was found. State then counts as found if any
    /// units are used.
    Answered(Readings),
    /// No answer arrived: the call was executed completely, or not at all.
    #[default]
    Unknown,
    /// The call was certainly not executed, and will certainly not be executed later.
    NotCarriedOut,
}

/// One call to a store, or one request to a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// A moment before anything of the call was sent.
    pub issued: Moment,
    /// A moment after the answer or the error arrived, or [`NEVER`] if the caller stopped waiting.
    pub answered: Moment,
    /// The caller's time, by which the call was decided.
    pub now: Timestamp,
    /// The charges.
    pub charges: Vec<RecordedCharge>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A period of real time in which the store lost state. In a loss, the store lost its complete
/// state, because it was killed or flushed. In a cut, it lost only the latest charges, because a
/// promoted replica had not received them.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The start of the period. Nothing was lost before this moment.
    pub from: Moment,
    /// The end of the period, or [`NEVER`] if the loss has not ended. Nothing was lost after this
    /// moment.
    pub until: Moment,
}

/// The recorded calls, and the losses of state that the environment caused.
///
/// A [`Recorder`](super::Recorder) creates a history, or a test creates it from other records.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The calls, in any order.
    pub calls: Vec<Call>,
    /// The losses of the complete state. Each loss ends every window early.
    pub losses: Vec<Loss>,
    /// The cuts: periods of which the store may have lost the charges. A window that was opened
    /// during a cut is lost, and charges to other windows during the cut may be lost.
    /// [`Allowance::lost`](super::Allowance::lost) bounds the number of these units.
    pub cuts: Vec<Loss>,
    /// The number of calls that were made but not recorded. If the number is not 0, the history
    /// cannot be checked.
    pub unrecorded: u64,
}
