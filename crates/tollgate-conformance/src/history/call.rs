//! The recorded data: calls with their start and end in real time, and their outcomes.

use tollgate_core::{Charge, Limit, Operation, Readings, Subject, Timestamp};

/// A point in the real time of one history. Later points have larger numbers.
///
/// A counter that all callers share can provide these numbers.
pub type Moment = u64;

/// The number for an event that never happens.
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
    /// as HTTP responses, do not contain whether the store found a state. In this case, a state
    /// counts as found if any units are used.
    Answered(Readings),
    /// No answer arrived. The call may have been executed completely or not at all.
    #[default]
    Unknown,
    /// The call was certainly not executed, and will certainly not be executed later.
    NotCarriedOut,
}

/// One call to a store, or one request to a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// A moment before any data of the call was sent.
    pub issued: Moment,
    /// A moment after the answer or the error arrived, or [`NEVER`] if the caller stopped waiting.
    pub answered: Moment,
    /// The caller's time, at which the call was decided.
    pub now: Timestamp,
    /// The charges.
    pub charges: Vec<RecordedCharge>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A period of real time in which the store lost state. In a loss, the store lost its complete
/// state, because the store was killed or flushed. In a cut, the store lost only the latest
/// charges, because a promoted replica had not received these charges.
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
/// A [`Recorder`](super::Recorder) creates a history, or a test creates the history from other
/// records.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The calls, in any order.
    pub calls: Vec<Call>,
    /// The losses of the complete state. Each loss ends every window early.
    pub losses: Vec<Loss>,
    /// The cuts: periods in which the store may have lost charges. A window that was opened during
    /// a cut is lost, and charges to other windows during the cut may be lost.
    /// [`Allowance::lost`](super::Allowance::lost) bounds the number of these units.
    pub cuts: Vec<Loss>,
    /// The number of calls that were made but not recorded. If the number is not 0, the history
    /// cannot be checked.
    pub unrecorded: u64,
}
