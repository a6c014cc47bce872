//! Charges that are made without creating or moving a [`Cell`], which is faster. They change the
//! two numbers of a fixed window or a token bucket directly, or the stored bytes of a sliding
//! window.

use tollgate_core::decide::{Plain, charge_plain};
use tollgate_core::limit::Refusals;
use tollgate_core::{Admission, Cell, ChargeId, Cost, Reading, Timestamp, charge_bytes};

use crate::error::CommandError;
use crate::location_state::Undo;
use crate::request::{JobCharge, Op, Target};
use crate::step::{Keyspace, Step};
use crate::stored::Stored;

impl<K: Keyspace> Step<'_, K> {
    /// Makes the charge `target` on a sliding window without decoding its bytes, and returns the
    /// reading. Returns `None`, and changes nothing, if the charge cannot be made without decoding.
    #[inline]
    pub(crate) fn charge_window(&mut self, target: &Target, now: Timestamp) -> Option<Reading> {
        let state = &mut self.states[target.location];
        let bytes = &mut self.values[state.bytes.clone()?];
        let reading = charge_bytes(bytes, &self.rules[target.rule], target.cost, now)?;
        state.changed = Some((target.rule, now));
        Some(reading)
    }

    /// Makes the charge `target` on the two numbers of a fixed window or a token bucket, without
    /// moving the cell that contains them. Returns the reading, and the value that undoes the
    /// charge. Returns `None`, and changes nothing, if the location has any other state or none.
    #[inline(always)]
    pub(crate) fn charge_plain(
        &mut self,
        target: &Target,
        now: Timestamp,
    ) -> Option<(Reading, Undo)> {
        let Target { rule, location, cost } = *target;
        let (limit, state) = (&self.rules[rule], &mut self.states[location]);
        let before = match &state.stored {
            Stored::Cell(Cell::FixedWindow(state)) => Plain::FixedWindow(*state),
            Stored::Cell(Cell::TokenBucket(state)) => Plain::TokenBucket(*state),
            _ => return None,
        };
        let (reading, after) = charge_plain(before, limit, cost, now)?;
        let (changed, is_end_moved) = (state.changed, state.is_end_moved);
        let is_counted =
            reading.admission == Admission::Now || limit.refusals() == Refusals::Counted;
        if is_counted && cost != Cost::PEEK {
            // Each charge changes the time at which a token bucket expires.
            let is_bucket = matches!(after, Plain::TokenBucket(_));
            let end = if is_bucket { None } else { state.end(limit) };
            state.replace_plain(after);
            state.is_end_moved |= is_bucket || state.end(limit) != end;
            state.changed = Some((rule, now));
        }
        Some((reading, Undo { location, before, changed, is_end_moved }))
    }

    /// Executes a job that consists only of the charges `plain_charges`, and writes its answer.
    /// Uses [`charge_all_plain`](Self::charge_all_plain) if possible, and otherwise executes the
    /// charges in the general way.
    pub(crate) fn charge_job(
        &mut self,
        plain_charges: &[Target],
        now: Timestamp,
    ) -> Result<(), CommandError> {
        if self.charge_all_plain(plain_charges, now)? {
            return Ok(());
        }
        let take = |&Target { rule, location, cost }: &Target| {
            let op = Op::Charge { cost, id: ChargeId::default() };
            JobCharge { rule, location, op }
        };
        self.job(&plain_charges.iter().map(take).collect::<Vec<_>>(), now)
    }

    /// Executes a job that consists only of the charges `plain_charges`, if all of them fit and all
    /// of their states consist of two numbers. Returns whether the job was executed. If it returns
    /// false, nothing has changed.
    pub(crate) fn charge_all_plain(
        &mut self,
        plain_charges: &[Target],
        now: Timestamp,
    ) -> Result<bool, CommandError> {
        let begin = self.reply.len();
        self.undo.clear();
        self.reply.decided();
        let mut is_admitted = true;
        for target in plain_charges {
            self.load(target.location)?;
            let charged = self.charge_plain(target, now);
            let Some((reading, undo)) = charged else {
                is_admitted = false;
                break;
            };
            self.reply.reading(&reading);
            self.undo.push(undo);
            if reading.admission != Admission::Now {
                is_admitted = false;
                break;
            }
        }
        if is_admitted {
            return Ok(true);
        }
        self.reply.truncate(begin);
        while let Some(Undo { location, before, changed, is_end_moved }) = self.undo.pop() {
            let state = &mut self.states[location];
            state.replace_plain(before);
            (state.changed, state.is_end_moved) = (changed, is_end_moved);
        }
        Ok(false)
    }
}
