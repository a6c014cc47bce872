//! The server's keys: reading states, and writing changes.

use std::collections::HashSet;
use std::time::Duration;

use redis_module::key::{RedisKey, RedisKeyWritable};
use redis_module::{Context, KeyType, RedisString};
use tollgate_core::{Millis, Timestamp};

use crate::error::CommandError;
use crate::request::Place;
use crate::step::{Change, Keyspace};
use crate::stored::Stored;
use crate::table::{MAX_SLOTS, Table, slots_of};

/// A table that uses more slots than this gets no new entries.
const FULL_TABLE_SLOTS: usize = MAX_SLOTS / 100 * 80;
/// A table with more slots than this is rebuilt when it uses less than a quarter of them.
const SHRINKING_SLOTS: usize = 64;

/// Whether a command may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

enum Opened {
    Read(RedisKey),
    Write(RedisKeyWritable),
}

/// The keys of one command. Each is opened at most once, on its first use.
pub(crate) struct ServerKeys<'c> {
    context: &'c Context,
    names: &'c [RedisString],
    access: Access,
    opened: Vec<Option<Opened>>,
}

impl<'c> ServerKeys<'c> {
    /// # Errors
    /// [`CommandError::RepeatedKey`]: a key must not be open twice while it is written.
    pub(crate) fn new(
        context: &'c Context,
        names: &'c [RedisString],
        access: Access,
    ) -> Result<Self, CommandError> {
        const FEW: usize = 16;
        let is_repeated = if names.len() <= FEW {
            let mut seen: [&[u8]; FEW] = [&[]; FEW];
            names.iter().enumerate().any(|(index, name)| {
                seen[index] = name.as_slice();
                seen[..index].contains(&seen[index])
            })
        } else {
            let mut seen = HashSet::with_capacity(names.len());
            !names.iter().all(|name| seen.insert(name.as_slice()))
        };
        if is_repeated {
            return Err(CommandError::RepeatedKey);
        }
        let opened = names.iter().map(|_| None).collect();
        Ok(Self { context, names, access, opened })
    }

    fn open(&mut self, key: usize) -> &Opened {
        let (context, access, name) = (self.context, self.access, &self.names[key]);
        self.opened[key].get_or_insert_with(|| match access {
            Access::Read => Opened::Read(context.open_key(name)),
            Access::Write => Opened::Write(context.open_key_writable(name)),
        })
    }

    /// Calls `read` with the value of a key: `Ok(None)` if it is missing, and an error if it is no
    /// string.
    pub(crate) fn read<T>(
        &mut self,
        key: usize,
        read: impl FnOnce(Result<Option<&[u8]>, ()>) -> T,
    ) -> T {
        match self.open(key) {
            Opened::Read(key) => read(key.read().map_err(drop)),
            Opened::Write(key) => match key.key_type() {
                KeyType::Empty => read(Ok(None)),
                KeyType::String => match key.as_string_dma() {
                    Ok(bytes) => read(Ok(Some(&bytes))),
                    Err(_) => read(Err(())),
                },
                _ => read(Err(())),
            },
        }
    }

    fn writable(&mut self, key: usize) -> Result<&RedisKeyWritable, CommandError> {
        match self.open(key) {
            Opened::Write(key) => Ok(key),
            Opened::Read(_) => Err(CommandError::Writes),
        }
    }

    /// Writes the changes, whose values are in `values`. The server's time is `clock`.
    ///
    /// # Errors
    /// [`CommandError`] before anything was written, if a table would become too large.
    pub(crate) fn write(
        &mut self,
        changes: &mut [Change],
        values: &[u8],
        clock: Timestamp,
    ) -> Result<(), CommandError> {
        let seconds = seconds(clock.as_millis());
        // The changes of each table are next to each other.
        changes.sort_unstable_by_key(table_of);
        let is_of_one_table = |one: &Change, next: &Change| table_of(one) == table_of(next);
        let mut grown = Vec::new();
        for of_table in changes.chunk_by(is_of_one_table) {
            if let Some(table) = of_table.first().and_then(table_of)
                && let Some(bytes) = self.grown(table, of_table, seconds)?
            {
                grown.push((table, bytes));
            }
        }
        let mut grown = grown.into_iter().peekable();
        for of_table in changes.chunk_by(is_of_one_table) {
            match of_table.first().and_then(table_of) {
                Some(table) => {
                    let bytes = grown.next_if(|(of, _)| *of == table).map(|(_, bytes)| bytes);
                    self.write_table(table, bytes, of_table, values, clock)?;
                }
                None => {
                    for change in of_table {
                        self.write_key(change, &values[change.value.clone()])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes of a table with room for the changes, if it has to be replaced.
    fn grown(
        &mut self,
        table: usize,
        changes: &[Change],
        now: u32,
    ) -> Result<Option<Vec<u8>>, CommandError> {
        let more: usize = changes
            .iter()
            .map(|change| match slots_of(change.value.len()) {
                1 if change.existed => 0,
                slots => slots,
            })
            .sum();
        let too_large = CommandError::Invalid("number of entries: a table is full");
        self.read(table, |bytes| {
            let Ok(Some(bytes)) = bytes else {
                let empty = Table::with_room(more).map_err(|_| too_large)?;
                return Ok(Some(empty.into_bytes()));
            };
            let slots = bytes.len() / 32;
            let table = Table::open(bytes).ok_or(CommandError::NotATable)?;
            let is_sparse = slots > SHRINKING_SLOTS && (table.used() + more) * 4 < slots;
            if table.has_room(more) && !is_sparse {
                return Ok(None);
            }
            table.rebuilt(more, now).map(Some).map_err(|_| too_large)
        })
    }

    fn write_table(
        &mut self,
        table: usize,
        grown: Option<Vec<u8>>,
        changes: &[Change],
        values: &[u8],
        clock: Timestamp,
    ) -> Result<(), CommandError> {
        let now = seconds(clock.as_millis());
        let key = self.writable(table)?;
        let is_replaced = grown.is_some();
        if let Some(bytes) = grown {
            replace(key, &bytes)?;
        }
        let mut bytes = key.as_string_dma().map_err(|_| CommandError::NotWritten)?;
        let mut packed = Table::open(&mut bytes[..]).ok_or(CommandError::NotATable)?;
        packed.sweep(now);
        let mut last = 0;
        for change in changes {
            let Place::Entry(_, id) = change.place else { continue };
            let end = |until_now: Option<u32>| {
                let until_now = until_now.filter(|_| !change.is_end_moved);
                let end = until_now.unwrap_or_else(|| {
                    seconds(clock.after(change.live).as_millis()).saturating_add(1)
                });
                last = last.max(end);
                end
            };
            let value = &values[change.value.clone()];
            packed.set(change.slot, id, value, end).map_err(|_| CommandError::NotWritten)?;
        }
        let known = packed.last_end();
        if last > known {
            // The expiry is set a little later, so that it moves seldom.
            packed.set_last_end(last.saturating_add((last - now.min(last)) / 8 + 1));
        }
        let (end, is_moved) = (packed.last_end(), last > known);
        if is_moved || is_replaced {
            expire(key, u64::from(end.saturating_sub(now).max(1)) * 1_000)?;
        }
        Ok(())
    }

    fn write_key(&mut self, change: &Change, value: &[u8]) -> Result<(), CommandError> {
        let key = self.writable(change.place.key())?;
        if value.is_empty() {
            return key.delete().map(drop).map_err(|_| CommandError::NotWritten);
        }
        if !matches!(key.key_type(), KeyType::Empty | KeyType::String) {
            key.delete().map_err(|_| CommandError::NotWritten)?;
        }
        write_bytes(key, value)?;
        if change.is_end_moved { expire(key, change.live.get()) } else { Ok(()) }
    }

    /// Sets a string and its time to live.
    pub(crate) fn write_value(
        &mut self,
        key: usize,
        value: &[u8],
        live: Millis,
    ) -> Result<(), CommandError> {
        let key = self.writable(key)?;
        write_bytes(key, value)?;
        expire(key, live.get())
    }

    /// Sends changes of keys to the replicas and to the append-only file as `SET` and `DEL`, which
    /// servers without the module execute too.
    pub(crate) fn replicate_changes(&self, changes: &[Change], values: &[u8], clock: Timestamp) {
        let context = self.context;
        // The server copies no word that is one of its strings already.
        let text = |bytes: &[u8]| RedisString::create_from_slice(context.get_raw(), bytes);
        let (until, keep) = (text(b"PXAT"), text(b"KEEPTTL"));
        for change in changes {
            let (name, value) = (&self.names[change.place.key()], &values[change.value.clone()]);
            if value.is_empty() {
                context.replicate("DEL", &[name][..]);
                continue;
            }
            let value = text(value);
            if change.is_end_moved {
                let end = clock.after(change.live).as_millis();
                let end = text(itoa::Buffer::new().format(end).as_bytes());
                context.replicate("SET", &[name, &value, &until, &end][..]);
            } else {
                context.replicate("SET", &[name, &value, &keep][..]);
            }
        }
    }

    /// Sends a command on tables to the replicas and to the append-only file, with the time by the
    /// server's clock.
    pub(crate) fn replicate_command(&self, argument: &RedisString, clock: Timestamp) {
        let clock = &clock.as_millis().to_le_bytes()[..7];
        let clock = RedisString::create_from_slice(self.context.get_raw(), clock);
        let mut words = Vec::with_capacity(2 + self.names.len());
        words.extend([&clock, argument]);
        words.extend(self.names);
        self.context.replicate("TOLLGATE.APPLY", &words[..]);
    }
}

impl Keyspace for ServerKeys<'_> {
    fn load(&mut self, place: Place) -> Result<(Stored, usize), CommandError> {
        self.read(place.key(), |bytes| match (place, bytes) {
            (_, Ok(None)) => Ok((Stored::Missing, 0)),
            (Place::Key(_), Ok(Some(bytes))) => Ok((Stored::from_key(bytes), 0)),
            (Place::Key(_), Err(())) => Ok((Stored::Foreign, 0)),
            (Place::Entry(_, id), Ok(Some(bytes))) => {
                let table = Table::open(bytes).ok_or(CommandError::NotATable)?;
                Ok(table.read(id, Stored::from_entry).unwrap_or_default())
            }
            (Place::Entry(..), Err(())) => Err(CommandError::NotATable),
        })
    }

    fn is_full(&mut self, place: Place) -> bool {
        let Place::Entry(key, _) = place else { return false };
        self.read(key, |bytes| match bytes {
            Ok(Some(bytes)) => {
                Table::open(bytes).is_some_and(|table| table.used() > FULL_TABLE_SLOTS)
            }
            _ => false,
        })
    }
}

fn table_of(change: &Change) -> Option<usize> {
    match change.place {
        Place::Entry(key, _) => Some(key),
        Place::Key(_) => None,
    }
}

/// Rounds up, and ends in the year 2106.
fn seconds(millis: u64) -> u32 {
    u32::try_from(millis.div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// Replaces a value. A new string has no spare bytes, unlike one that grows.
fn replace(key: &RedisKeyWritable, bytes: &[u8]) -> Result<(), CommandError> {
    if key.key_type() != KeyType::Empty {
        key.delete().map_err(|_| CommandError::NotWritten)?;
    }
    write_bytes(key, bytes)
}

fn write_bytes(key: &RedisKeyWritable, bytes: &[u8]) -> Result<(), CommandError> {
    let mut value = key.as_string_dma().map_err(|_| CommandError::NotWritten)?;
    value.write(bytes).map(drop).map_err(|_| CommandError::NotWritten)
}

fn expire(key: &RedisKeyWritable, millis: u64) -> Result<(), CommandError> {
    key.set_expire(Duration::from_millis(millis)).map(drop).map_err(|_| CommandError::NotWritten)
}
