//! One charge of one call, as the rules see it.

use std::fmt;

use tollgate_core::{
    Ask, ChargeId, Fit, Found, Limit, Reading, Refusals, Source, StoreError, Timestamp,
};

use super::call::{Asked, Call, Loss, Moment, NEVER, Outcome};

/// Units, with room for sums and differences of any number of costs.
pub(super) type Units = i128;

/// Who told a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    Store,
    /// The node, of an answer that the store gave it before.
    Memory,
    /// What stands in for the store.
    Fallback,
}

/// What the call that a charge is part of decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Admitted,
    Refused,
}

/// One charge of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'h> {
    /// The call's place in the history.
    pub(super) call: usize,
    pub(super) issued: Moment,
    pub(super) answered: Moment,
    pub(super) now: Timestamp,
    pub(super) limit: &'h Limit,
    pub(super) ask: Ask,
    /// `None` where nobody heard.
    pub(super) told: Option<(Teller, Decision, &'h Reading)>,
    /// Whether its call is on several subjects, which may have several homes.
    pub(super) spans: bool,
    /// Whether the store may have carried it out though something else answered.
    pub(super) may_be_unheard: bool,
    /// The units of the reservation that it settles; none of any other.
    pub(super) reserved: Units,
}

impl<'h> Event<'h> {
    /// The charge `asked`, at `place` in the call of this number.
    pub(super) fn new(number: usize, call: &'h Call, place: usize, asked: &'h Asked) -> Self {
        let Call { issued, answered, now, .. } = *call;
        let told = match &call.outcome {
            Outcome::Answered(readings) => readings.get(place).and_then(|reading| {
                let teller = match readings.source() {
                    Source::Store => Teller::Store,
                    Source::Remembered => Teller::Memory,
                    Source::Fallback(_) => Teller::Fallback,
                    Source::Failure(_) => return None,
                };
                Some((teller, decision(call, readings), reading))
            }),
            Outcome::Unknown | Outcome::NotCarriedOut => None,
        };
        let (limit, ask, spans) = (&asked.limit, asked.ask, spans(call));
        // One home can have no answer, and another one be out of reach.
        let may_be_unheard = spans || !is_surely_unheard(call);
        let reserved = 0;
        Self {
            call: number,
            issued,
            answered,
            now,
            limit,
            ask,
            told,
            spans,
            may_be_unheard,
            reserved,
        }
    }

    /// The reading that the store told of its primary state. A look may be answered by a copy.
    pub(super) fn reading(&self) -> Option<&'h Reading> {
        match (self.ask, self.told) {
            (Ask::Look { .. }, _) => None,
            (_, Some((Teller::Store, _, reading))) => Some(reading),
            _ => None,
        }
    }

    /// The units of a take that the store admitted.
    pub(super) fn admitted(&self) -> Units {
        match self.told {
            Some((Teller::Store, Decision::Admitted, _)) => self.asked(),
            _ => 0,
        }
    }

    /// The units that somebody was given: of a take that was admitted, or beyond a reservation.
    pub(super) fn granted(&self) -> Units {
        match self.ask {
            Ask::Settle { .. } => self.counted(),
            _ => self.admitted(),
        }
    }

    /// The units that the store counted: those of an admitted take, of a refused one where the limit
    /// counts refusals, and what a settlement took beyond its reservation.
    pub(super) fn counted(&self) -> Units {
        if let Ask::Settle { .. } = self.ask {
            return self.reading().map_or(0, |reading| Units::from(reading.added));
        }
        match self.told {
            Some((Teller::Store, Decision::Refused, _))
                if self.limit.refusals() == Refusals::Counted =>
            {
                self.asked()
            }
            _ => self.admitted(),
        }
    }

    /// The units that it may hold while its call is under way, and that are given back then.
    pub(super) fn held(&self) -> Units {
        match self.told {
            Some((Teller::Store, Decision::Refused, _)) if self.spans => self.asked(),
            _ => 0,
        }
    }

    /// The units that it may have been admitted for: all of them where nobody heard.
    pub(super) fn may_be_admitted(&self) -> Units {
        if self.told.is_none() { self.asked() } else { self.admitted() }
    }

    /// The units that may have counted: all of them where nobody heard.
    pub(super) fn may_count(&self) -> Units {
        match self.ask {
            _ if self.told.is_some() => self.counted(),
            Ask::Settle { cost, .. } => (Units::from(cost.get()) - self.reserved).max(0),
            _ => self.asked(),
        }
    }

    /// The charge that it is, gives back or renews.
    pub(super) const fn id(&self) -> Option<ChargeId> {
        match self.ask {
            Ask::Take { id, .. } | Ask::Refund { id, .. } | Ask::Renew { id } => Some(id),
            Ask::Reserve { id, .. } | Ask::Extend { id, .. } | Ask::Settle { id, .. } => Some(id),
            Ask::Look { .. } | Ask::Forget => None,
        }
    }

    /// The units that a take asks for.
    pub(super) fn asked(&self) -> Units {
        match self.ask {
            Ask::Take { cost, .. } | Ask::Reserve { cost, .. } => Units::from(cost.get()),
            _ => 0,
        }
    }

    /// The units that a refund or a settlement gave back; all that it may where nobody heard.
    pub(super) fn given_back(&self) -> Units {
        match (self.ask, self.told) {
            (Ask::Refund { .. } | Ask::Settle { .. }, Some((_, _, reading))) => {
                Units::from(reading.given_back)
            }
            (Ask::Refund { cost, .. }, None) => Units::from(cost.get()),
            (Ask::Settle { cost, .. }, None) => (self.reserved - Units::from(cost.get())).max(0),
            _ => 0,
        }
    }

    /// What was used after it.
    pub(super) fn used(&self) -> Units {
        self.reading().map_or(0, |reading| Units::from(reading.used))
    }

    /// What was used before it, if nobody gave anything back.
    pub(super) fn start(&self) -> Units {
        self.used() - self.counted()
    }

    /// Whether its reading is of state that is stored, not of what a charge would open. Reservations
    /// outlive their window: where they are all that is stored, it tells of no window.
    pub(super) fn is_of_state(&self) -> bool {
        let Some(reading) = self.reading() else { return false };
        let finds = matches!(self.ask, Ask::Settle { .. } | Ask::Extend { .. }) || reading.held > 0;
        let may_be_of_holds = finds && reading.used == 0 && reading.given_back == 0;
        reading.found == Found::State && !may_be_of_holds || self.counted() > 0
    }

    /// Whether it was told before `other` was asked.
    pub(super) const fn precedes(&self, other: &Self) -> bool {
        self.answered < other.issued
    }

    /// Whether it may have happened before or after `loss`.
    pub(super) const fn straddles(&self, loss: &Loss) -> bool {
        self.issued < loss.until && loss.from < self.answered
    }
}

/// Whether a call is on several subjects.
fn spans(call: &Call) -> bool {
    call.charges.windows(2).any(|pair| pair[0].subject != pair[1].subject)
}

/// Whether something else answered a call because it never came to the store.
fn is_surely_unheard(call: &Call) -> bool {
    let Outcome::Answered(readings) = &call.outcome else { return false };
    matches!(readings.source(), Source::Fallback(StoreError::Unavailable | StoreError::Full))
}

/// A call is admitted if all of its takes fit.
fn decision(call: &Call, readings: &[Reading]) -> Decision {
    let refused = |(asked, reading): (&Asked, &Reading)| {
        asked.ask.taken().is_some() && reading.fit != Fit::Now
    };
    let any = call.charges.iter().zip(readings).any(refused);
    if any { Decision::Refused } else { Decision::Admitted }
}

impl fmt::Display for Event<'_> {
    /// `call 7 (12..15) take 3 at 1000: admitted, used 5, whole at 2000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} ({}..", self.call, self.issued)?;
        if self.answered != NEVER {
            write!(f, "{}", self.answered)?;
        }
        let now = self.now.as_millis();
        match self.ask {
            Ask::Take { cost, .. } => write!(f, ") take {} at {now}: ", cost.get()),
            Ask::Look { cost } => write!(f, ") look for {} at {now}: ", cost.get()),
            Ask::Refund { cost, mark, .. } => {
                write!(f, ") refund {} to {} at {now}: ", cost.get(), mark.0)
            }
            Ask::Renew { .. } => write!(f, ") renew at {now}: "),
            Ask::Forget => write!(f, ") forget at {now}: "),
            Ask::Reserve { cost, .. } => write!(f, ") reserve {} at {now}: ", cost.get()),
            Ask::Extend { .. } => write!(f, ") extend at {now}: "),
            Ask::Settle { cost, .. } => write!(f, ") settle at {} at {now}: ", cost.get()),
        }?;
        let Some((teller, decision, reading)) = self.told else { return f.write_str("unknown") };
        match (self.ask, decision) {
            (Ask::Take { .. }, Decision::Admitted) => f.write_str("admitted, ")?,
            (Ask::Take { .. }, Decision::Refused) => write!(f, "refused ({:?}), ", reading.fit)?,
            (Ask::Reserve { .. }, Decision::Admitted) => f.write_str("held, ")?,
            (Ask::Reserve { .. }, Decision::Refused) => write!(f, "refused ({:?}), ", reading.fit)?,
            (Ask::Refund { .. }, _) => write!(f, "gave back {}, ", reading.given_back)?,
            (Ask::Settle { .. } | Ask::Extend { .. }, _) if reading.fit != Fit::Now => {
                f.write_str("not held, ")?;
            }
            (Ask::Settle { .. }, _) => {
                write!(f, "gave back {}, took {}, ", reading.given_back, reading.added)?;
            }
            _ => {}
        }
        write!(f, "used {}, whole at {}", reading.used, reading.whole_at.as_millis())?;
        match teller {
            Teller::Store => Ok(()),
            Teller::Memory => f.write_str(", remembered"),
            Teller::Fallback => f.write_str(", by the fallback"),
        }
    }
}
