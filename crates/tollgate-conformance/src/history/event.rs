//! One charge of one call, as the rules of the checker read it.

use std::fmt;

use tollgate_core::{
    Admission, Algorithm, ChargeId, DecisionSource, Limit, LimitMode, Operation, Reading, Refusals,
    StoreError, StoredState, Timestamp,
};

use super::call::{Call, Loss, Moment, NEVER, Outcome, RecordedCharge};

/// A number of units. The type has room for sums and differences of any number of costs.
pub(super) type Units = i128;

/// The source of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerSource {
    Store,
    /// The node itself decided, with its deny cache.
    Memory,
    /// The fallback, or an overflow counter of a full memory store.
    Fallback,
}

/// The decision on the call to which a charge belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Admitted,
    Refused,
}

/// One charge of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'h> {
    /// The index of the call in the history.
    pub(super) call: usize,
    pub(super) issued: Moment,
    pub(super) answered: Moment,
    pub(super) now: Timestamp,
    pub(super) limit: &'h Limit,
    pub(super) operation: Operation,
    /// The source of the answer, the decision on the call and the reading of the charge. `None` if
    /// no answer arrived.
    pub(super) answer: Option<(AnswerSource, Decision, &'h Reading)>,
    /// Whether the units of the event may be charged temporarily, until another charge of the same
    /// call is refused. This is possible in two cases: the call has several subjects, and the other
    /// charge may be on another server; or the node decides the event itself, from its units of a
    /// leased limit.
    pub(super) may_be_held: bool,
    /// Whether the store may have executed the event, even if the answer came from another source.
    pub(super) may_have_run: bool,
    /// The latest time at which the store may have executed the event. This is the event's own
    /// time, or, if a node charges the store later, the reset that the fallback reported.
    pub(super) may_count_until: Timestamp,
    /// The units of the reservation that the event settles, or 0.
    pub(super) reserved: Units,
}

impl<'h> Event<'h> {
    /// Creates the event for the charge `charge`, which has the index `index` in the call with the
    /// index `number`.
    pub(super) fn new(
        number: usize,
        call: &'h Call,
        index: usize,
        charge: &'h RecordedCharge,
    ) -> Self {
        let Call { issued, answered, now, .. } = *call;
        let answer = match &call.outcome {
            Outcome::Answered(readings) => readings.get(index).and_then(|reading| {
                let source = match readings.source() {
                    DecisionSource::Store => AnswerSource::Store,
                    DecisionSource::DenyCache => AnswerSource::Memory,
                    // An overflow counter may refuse too early, and its used units include units of
                    // other subjects.
                    DecisionSource::Overflow | DecisionSource::Fallback(_) => {
                        AnswerSource::Fallback
                    }
                    DecisionSource::Failure(_) => return None,
                };
                Some((source, decision(call, readings), reading))
            }),
            Outcome::Unknown | Outcome::NotCarriedOut => None,
        };
        let (limit, operation, spans) = (&charge.limit, charge.operation, spans(call));
        let is_leased = limit.mode() == LimitMode::Leased;
        let may_be_held = spans || (is_leased && call.charges.len() > 1);
        // If the call went to several servers, one server may have executed its charges without
        // answering, even if another server certainly received nothing.
        let may_have_run = spans || !is_certainly_not_received(call);
        let reserved = 0;
        Self {
            call: number,
            issued,
            answered,
            now,
            limit,
            operation,
            answer,
            may_be_held,
            may_have_run,
            may_count_until: now,
            reserved,
        }
    }

    /// Returns the reading if it certainly comes from the primary's state. Peeks are excluded,
    /// because a replica may answer a peek.
    pub(super) fn reading(&self) -> Option<&'h Reading> {
        match (self.operation, self.answer) {
            (Operation::Peek { .. }, _) => None,
            (_, Some((AnswerSource::Store, _, reading))) => Some(reading),
            _ => None,
        }
    }

    /// Returns whether the fallback admitted the charge, and a node charges its units to the store
    /// later.
    pub(super) fn is_charged_later(&self) -> bool {
        let is_admitted =
            matches!(self.answer, Some((AnswerSource::Fallback, Decision::Admitted, _)));
        let is_window = !matches!(self.limit.algorithm(), Algorithm::Concurrency(_));
        is_admitted && is_window && !self.may_have_run
    }

    /// Returns the units of a charge that the store admitted. Returns 0 for every other event.
    pub(super) fn admitted(&self) -> Units {
        match self.answer {
            Some((AnswerSource::Store, Decision::Admitted, _)) => self.requested(),
            _ => 0,
        }
    }

    /// Returns the units that were granted: the units of an admitted charge, or the units that a
    /// settlement charged beyond its reservation.
    pub(super) fn granted(&self) -> Units {
        match self.operation {
            Operation::Settle { .. } => self.counted(),
            _ => self.admitted(),
        }
    }

    /// Returns the units that the store counted: the units of an admitted charge, the units of a
    /// refused charge if the limit counts refusals, or the units that a settlement charged beyond
    /// its reservation.
    pub(super) fn counted(&self) -> Units {
        if let Operation::Settle { .. } = self.operation {
            return self.reading().map_or(0, |reading| Units::from(reading.added));
        }
        match self.answer {
            Some((AnswerSource::Store, Decision::Refused, _))
                if self.limit.refusals() == Refusals::Counted =>
            {
                self.requested()
            }
            _ => self.admitted(),
        }
    }

    /// Returns the units that may be charged temporarily while the event's call is running, and are
    /// refunded at the end of the call.
    pub(super) fn held(&self) -> Units {
        match self.answer {
            Some((AnswerSource::Store, Decision::Refused, _)) if self.may_be_held => {
                self.requested()
            }
            _ => 0,
        }
    }

    /// Returns the units that may have been admitted. If no answer arrived, these are all units of
    /// the charge.
    pub(super) fn may_be_admitted(&self) -> Units {
        if self.answer.is_none() { self.requested() } else { self.admitted() }
    }

    /// Returns the units that may have been counted. If no answer arrived, these are all units of
    /// the charge.
    pub(super) fn may_count(&self) -> Units {
        match self.operation {
            _ if self.answer.is_some() => self.counted(),
            Operation::Settle { cost, .. } => (Units::from(cost.get()) - self.reserved).max(0),
            _ => self.requested(),
        }
    }

    /// Returns the id of the charge that the event makes, refunds or renews.
    pub(super) const fn id(&self) -> Option<ChargeId> {
        match self.operation {
            Operation::Charge { id, .. }
            | Operation::Refund { id, .. }
            | Operation::Renew { id } => Some(id),
            Operation::Reserve { id, .. }
            | Operation::Extend { id, .. }
            | Operation::Settle { id, .. } => Some(id),
            Operation::Peek { .. } | Operation::Reset => None,
        }
    }

    /// Returns the units that a charge requests.
    pub(super) fn requested(&self) -> Units {
        match self.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. } => {
                Units::from(cost.get())
            }
            _ => 0,
        }
    }

    /// Returns the units that a refund or a settlement returned. If no answer arrived, returns the
    /// largest number of units that the operation can have returned.
    pub(super) fn refunded(&self) -> Units {
        match (self.operation, self.answer) {
            (Operation::Refund { .. } | Operation::Settle { .. }, Some((_, _, reading))) => {
                Units::from(reading.refunded)
            }
            (Operation::Refund { cost, .. }, None) => Units::from(cost.get()),
            (Operation::Settle { cost, .. }, None) => {
                (self.reserved - Units::from(cost.get())).max(0)
            }
            _ => 0,
        }
    }

    /// Returns the units used after the event.
    pub(super) fn used(&self) -> Units {
        self.reading().map_or(0, |reading| Units::from(reading.used))
    }

    /// Returns the units used before the event, on the assumption that nothing was refunded.
    pub(super) fn start(&self) -> Units {
        self.used() - self.counted()
    }

    /// Returns whether the event's reading describes a stored window. Otherwise the reading
    /// describes a window that a charge would open. Reservations outlive their window: if only
    /// reservations are stored, no window is stored.
    pub(super) fn is_of_state(&self) -> bool {
        let Some(reading) = self.reading() else { return false };
        let finds = matches!(self.operation, Operation::Settle { .. } | Operation::Extend { .. })
            || reading.reserved > 0;
        let may_be_of_holds = finds && reading.used == 0 && reading.refunded == 0;
        reading.found == StoredState::Present && !may_be_of_holds || self.counted() > 0
    }

    /// Returns whether the event was answered before `other` was sent.
    pub(super) const fn precedes(&self, other: &Self) -> bool {
        self.answered < other.issued
    }

    /// Returns whether the event overlaps with `loss`, so the event may have happened before or
    /// after the loss.
    pub(super) const fn straddles(&self, loss: &Loss) -> bool {
        self.issued < loss.until && loss.from < self.answered
    }
}

/// Returns whether a call has several subjects.
fn spans(call: &Call) -> bool {
    call.charges.windows(2).any(|pair| pair[0].subject != pair[1].subject)
}

/// Returns whether the fallback answered the call, and the store certainly never received the call.
fn is_certainly_not_received(call: &Call) -> bool {
    let Outcome::Answered(readings) = &call.outcome else { return false };
    matches!(
        readings.source(),
        DecisionSource::Fallback(StoreError::Unavailable | StoreError::Full)
    )
}

/// Returns the decision on a call. A call is admitted if all of its charges fit.
fn decision(call: &Call, readings: &[Reading]) -> Decision {
    let refused = |(charge, reading): (&RecordedCharge, &Reading)| {
        charge.operation.as_charge().is_some() && reading.admission != Admission::Now
    };
    let any = call.charges.iter().zip(readings).any(refused);
    if any { Decision::Refused } else { Decision::Admitted }
}

impl fmt::Display for Event<'_> {
    /// Formats the event, for example as `call 7 (12..15) charge 3 at 1000: admitted, used 5,
    /// full reset at 2000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} ({}..", self.call, self.issued)?;
        if self.answered != NEVER {
            write!(f, "{}", self.answered)?;
        }
        let now = self.now.as_millis();
        match self.operation {
            Operation::Charge { cost, .. } => write!(f, ") charge {} at {now}: ", cost.get()),
            Operation::Peek { cost } => write!(f, ") peek {} at {now}: ", cost.get()),
            Operation::Refund { cost, position, .. } => {
                write!(f, ") refund {} to {} at {now}: ", cost.get(), position.0)
            }
            Operation::Renew { .. } => write!(f, ") renew at {now}: "),
            Operation::Reset => write!(f, ") reset at {now}: "),
            Operation::Reserve { cost, .. } => write!(f, ") reserve {} at {now}: ", cost.get()),
            Operation::Extend { .. } => write!(f, ") extend at {now}: "),
            Operation::Settle { cost, .. } => write!(f, ") settle at {} at {now}: ", cost.get()),
        }?;
        let Some((source, decision, reading)) = self.answer else { return f.write_str("unknown") };
        match (self.operation, decision) {
            (Operation::Charge { .. }, Decision::Admitted) => f.write_str("admitted, ")?,
            (Operation::Charge { .. }, Decision::Refused) => {
                write!(f, "refused ({:?}), ", reading.admission)?;
            }
            (Operation::Reserve { .. }, Decision::Admitted) => f.write_str("reserved, ")?,
            (Operation::Reserve { .. }, Decision::Refused) => {
                write!(f, "refused ({:?}), ", reading.admission)?;
            }
            (Operation::Refund { .. }, _) => write!(f, "refunded {}, ", reading.refunded)?,
            (Operation::Settle { .. } | Operation::Extend { .. }, _)
                if reading.admission != Admission::Now =>
            {
                f.write_str("not reserved, ")?;
            }
            (Operation::Settle { .. }, _) => {
                write!(f, "refunded {}, charged {}, ", reading.refunded, reading.added)?;
            }
            _ => {}
        }
        write!(f, "used {}, full reset at {}", reading.used, reading.full_reset_at.as_millis())?;
        match source {
            AnswerSource::Store => Ok(()),
            AnswerSource::Memory => f.write_str(", by the deny cache"),
            AnswerSource::Fallback => f.write_str(", by the fallback"),
        }
    }
}
