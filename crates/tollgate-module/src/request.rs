//! The argument of a command: its limits, its locations and its jobs. A location is a key or a
//! table entry that contains the state of one subject.
//!
//! The argument is encoded as for the Lua script in `tollgate-redis`, and its numbers are
//! little-endian. It consists of flags (bit 0: no key may be created, bit 1: the limits are
//! followed by a list of locations), the deadline in ms by the server's clock (0: none), the number
//! of limits, the limits, the list of locations if bit 1 is set, and the jobs.
//!
//! With a list of locations, an index in a job selects a location, otherwise a key. The list is
//! encoded as a byte that is 1 if the first key is the first table, otherwise 0; the number of
//! locations; and for each location the index of its key. If that key is the table, the id of the
//! table entry follows. All indexes begin at 1.

use std::rc::Rc;

use tollgate_core::{Cell, ChargeId, Cost, Limit, OnExpiry, Timestamp};

use crate::error::CommandError;
use crate::reader::Reader;
use crate::rule::{self, RULE_BYTES};

/// The size in bytes of the [`Id`] of a table entry.
pub(crate) const ID_BYTES: usize = 10;
/// The id of a table entry: a hash of the name of the key in which the state would be stored
/// without tables.
pub(crate) type Id = [u8; ID_BYTES];

/// The largest number of limits, the largest number of locations and the largest number of jobs in
/// a command. These maxima bound the memory and the time of a command.
pub(crate) const MAX_RULES: usize = 1_000;
pub(crate) const MAX_LOCATIONS: usize = 100_000;
pub(crate) const MAX_JOBS: usize = 100_000;
/// The largest number of charges in a job.
pub(crate) const MAX_CHARGES: usize = 1_000;

const TIGHT: u8 = 1;
const HAS_LOCATIONS: u8 = 2;

const TAKE_ALL: u8 = 8;
const TAKE_EACH: u8 = 9;
const TAKE_REPEATEDLY: u8 = 10;

/// Whether the command may create keys and table entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creation {
    Allowed,
    Denied,
}

/// The location where a subject's state is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A key with the state of this subject only. The value is the index of the key in the command.
    Key(usize),
    /// An entry in one of the tables.
    Entry(Id),
}

/// The parsed argument of a command. The jobs are not parsed yet: [`next`](Self::next) parses them
/// one by one.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) creation: Creation,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) rules: &'a [Rc<Limit>],
    pub(crate) locations: &'a [Location],
    jobs: Reader<'a>,
    jobs_left: usize,
}

/// A charge in a job. It consists of the index of its limit, the index of its location, and its
/// cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) rule: usize,
    pub(crate) location: usize,
    pub(crate) cost: Cost,
}

/// One operation of a job, on one limit and one location.
#[derive(Debug)]
pub(crate) struct JobCharge {
    /// The index of the limit in the command.
    pub(crate) rule: usize,
    /// The index of the location in the command.
    pub(crate) location: usize,
    pub(crate) op: Op,
}

/// An operation of a job, with its parameters.
#[derive(Debug)]
pub(crate) enum Op {
    Charge { cost: Cost, id: ChargeId },
    Peek { cost: Cost },
    Refund { cost: Cost, position: u64, id: ChargeId, guard: Option<Guard> },
    Renew { id: ChargeId },
    Reset,
    Cell,
    Join { cell: Cell },
    Reserve { cost: Cost, id: ChargeId, until: Timestamp, at_most: u64, on_expiry: OnExpiry },
    Extend { id: ChargeId, until: Timestamp },
    Settle { cost: Cost, id: ChargeId, most: u64 },
}

/// The memory of a refund, so that a repetition of the refund changes nothing: the index of the
/// location where the store remembers the refund, and the time until which it does so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) location: usize,
    pub(crate) until: Timestamp,
}

/// The part of a command that [`Request::next`] parses in one call: one job, or several jobs of the
/// same kind.
#[derive(Debug)]
pub(crate) enum Item {
    /// One job. Its operations are in the list `charges` that was passed to [`Request::next`].
    Job { now: Timestamp },
    /// One job that consists of charges only. The charges are in the list `plain_charges` that was
    /// passed to [`Request::next`].
    PlainCharges { now: Timestamp },
    /// Several jobs of one charge each. If `is_same` is set, all of them charge the location
    /// `location`. Otherwise they charge consecutive locations, beginning with `location`.
    Run { now: Timestamp, rule: usize, cost: Cost, location: usize, jobs: usize, is_same: bool },
}

impl<'a> Request<'a> {
    /// Parses the `argument` of a command that has `keys` keys. The limits and the locations are
    /// stored in two lists that the caller provides, which must be empty.
    ///
    /// # Errors
    /// [`CommandError`] if `argument` does not have the form that the module describes.
    pub(crate) fn parse(
        argument: &'a [u8],
        keys: usize,
        rules: &'a mut Vec<Rc<Limit>>,
        locations: &'a mut Vec<Location>,
    ) -> Result<Self, CommandError> {
        let mut reader = Reader::new(argument);
        let flags = reader.byte()?;
        if flags > TIGHT | HAS_LOCATIONS || keys > MAX_LOCATIONS {
            return Err(CommandError::Invalid("flags or number of keys"));
        }
        let creation = if flags & TIGHT == 0 { Creation::Allowed } else { Creation::Denied };
        let deadline = Some(reader.number()?).filter(|deadline| *deadline > 0);
        for _ in 0..reader.count(MAX_RULES, "number of limits")? {
            rules.push(rule::parse(*reader.array::<RULE_BYTES>()?)?);
        }
        if flags & HAS_LOCATIONS == 0 {
            locations.extend((0..keys).map(Location::Key));
        } else {
            parse_places(&mut reader, keys, locations)?;
        }
        let deadline = deadline.map(Timestamp::from_millis);
        Ok(Self { creation, deadline, rules, locations, jobs: reader, jobs_left: MAX_JOBS })
    }

    /// Returns the next job or jobs, or `None` at the end. Stores the operations of a job in
    /// `charges` or `plain_charges`.
    ///
    /// # Errors
    /// [`CommandError`] if a job does not have the format that the module describes.
    pub(crate) fn next(
        &mut self,
        charges: &mut Vec<JobCharge>,
        plain_charges: &mut Vec<Target>,
    ) -> Result<Option<Item>, CommandError> {
        if self.jobs.rest().is_empty() {
            return Ok(None);
        }
        let now = Timestamp::from_millis(self.jobs.exact("time")?);
        let count = self.jobs.count(MAX_JOBS, "number of jobs or charges")?;
        let op = self.jobs.byte()?;
        let is_run = op == TAKE_EACH || op == TAKE_REPEATEDLY;
        self.jobs_left = self
            .jobs_left
            .checked_sub(if is_run { count } else { 1 })
            .ok_or(CommandError::Invalid("number of jobs"))?;
        if is_run {
            let Target { rule, location, cost } = self.target()?;
            let is_same = op == TAKE_REPEATEDLY;
            let end = location.saturating_add(if is_same { 1 } else { count });
            if count == 0 || end > self.locations.len() || self.has_permits(rule) {
                return Err(CommandError::Invalid("run"));
            }
            return Ok(Some(Item::Run { now, rule, cost, location, jobs: count, is_same }));
        }
        if !(1..=MAX_CHARGES).contains(&count) {
            return Err(CommandError::Invalid("number of charges"));
        }
        if op == TAKE_ALL {
            plain_charges.clear();
            for _ in 0..count {
                let target = self.target()?;
                if self.has_permits(target.rule) {
                    return Err(CommandError::Invalid("permit"));
                }
                plain_charges.push(target);
            }
            return Ok(Some(Item::PlainCharges { now }));
        }
        charges.clear();
        for index in 0..count {
            let op = if index == 0 { op } else { self.jobs.byte()? };
            charges.push(self.charge(op)?);
        }
        Ok(Some(Item::Job { now }))
    }

    #[inline]
    fn target(&mut self) -> Result<Target, CommandError> {
        let rule = self.jobs.index(self.rules.len(), "limit")?;
        let location = self.jobs.index(self.locations.len(), "place")?;
        let cost = Cost::new(self.jobs.exact("cost")?).ok_or(CommandError::Invalid("cost"))?;
        Ok(Target { rule, location, cost })
    }

    fn charge(&mut self, code: u8) -> Result<JobCharge, CommandError> {
        let Target { rule, location, cost } = self.target()?;
        let has_permits = self.has_permits(rule);
        let jobs = &mut self.jobs;
        let op = match code {
            1 => Op::Charge { cost, id: ChargeId::default() },
            2 => Op::Charge { cost, id: jobs.id()? },
            3 => {
                Op::Refund { cost, position: jobs.number()?, id: ChargeId::default(), guard: None }
            }
            4 => {
                let position = jobs.number()?;
                let location = jobs.index(self.locations.len(), "place of a refund")?;
                let until = Timestamp::from_millis(jobs.exact("end of a refund")?);
                let guard = Some(Guard { location, until });
                Op::Refund { cost, position, id: ChargeId::default(), guard }
            }
            5 => Op::Refund { cost, position: 0, id: jobs.id()?, guard: None },
            6 => Op::Renew { id: jobs.id()? },
            7 => Op::Peek { cost },
            11 => Op::Reset,
            12 => Op::Cell,
            13 => {
                let size = jobs.count(usize::MAX, "size of a cell")?;
                let cell = Cell::from_bytes(jobs.bytes(size)?);
                Op::Join { cell: cell.ok_or(CommandError::Invalid("cell"))? }
            }
            14 => Op::Reserve {
                cost,
                id: jobs.id()?,
                until: Timestamp::from_millis(jobs.exact("end of a reservation")?),
                at_most: jobs.exact("number of reserved units")?,
                on_expiry: if jobs.byte()? == 1 { OnExpiry::Charge } else { OnExpiry::Release },
            },
            15 => {
                let id = jobs.id()?;
                let until = Timestamp::from_millis(jobs.exact("end of a reservation")?);
                Op::Extend { id, until }
            }
            16 => {
                let id = jobs.id()?;
                Op::Settle { cost, id, most: jobs.exact("number of used units")? }
            }
            _ => return Err(CommandError::Invalid("operation")),
        };
        let fits = match code {
            1 | 3 | 4 | 14 | 15 => !has_permits,
            2 | 5 => has_permits,
            _ => true,
        };
        if fits {
            Ok(JobCharge { rule, location, op })
        } else {
            Err(CommandError::Invalid("permit"))
        }
    }

    #[inline]
    fn has_permits(&self, rule: usize) -> bool {
        let algorithm = self.rules.get(rule).map(|limit| limit.algorithm());
        matches!(algorithm, Some(tollgate_core::Algorithm::Concurrency(_)))
    }
}

fn parse_places(
    reader: &mut Reader<'_>,
    keys: usize,
    locations: &mut Vec<Location>,
) -> Result<(), CommandError> {
    let tables = reader.count(keys.min(1), "number of tables")?;
    let count = reader.count(MAX_LOCATIONS, "number of places")?;
    // Each location takes at least two bytes. With this check, a short argument cannot cause a
    // large allocation.
    if count > reader.rest().len() / 2 {
        return Err(CommandError::Short);
    }
    locations.reserve(count);
    for _ in 0..count {
        let key = usize::from(u16::from_le_bytes(*reader.array()?));
        let key = key.checked_sub(1).filter(|key| *key < keys);
        let key = key.ok_or(CommandError::Invalid("key of a place"))?;
        locations.push(if key < tables {
            Location::Entry(*reader.array::<ID_BYTES>()?)
        } else {
            Location::Key(key)
        });
    }
    Ok(())
}
