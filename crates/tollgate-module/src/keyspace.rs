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

    /// Writes the changes. The server's time is `clock`.
    ///
    /// # Errors
    /// [`CommandError`] before anything was written, if a table would become too large.
    pub(crate) fn write(
        &mut self,
        changes: &mut [Change],
        clock: Timestamp,
    ) -> Result<(), CommandError> {
        let seconds = seconds(clock.as_millis());
        // The changes of each table are next to each other, in their order.
        changes.sort_by_key(table_of);
        let mut grown = Vec::with_capacity(self.names.len().min(changes.len()));
        for of_table in changes.chunk_by(|one, next| table_of(one) == table_of(next)) {
            if let Some(table) = of_table.first().and_then(table_of) {
                grown.push((table, self.grown(table, of_table, seconds)?, of_table));
            }
        }
        for (table, grown, of_table) in grown {
            self.write_table(table, grown, of_table, clock)?;
        }
        for change in &*changes {
            if let Place::Key(key) = change.place {
                self.write_key(key, change)?;
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
            let kept = packed.end_of(id).filter(|_| !change.is_end_moved);
            let end = kept
                .unwrap_or_else(|| seconds(clock.after(change.live).as_millis()).saturating_add(1));
            last = last.max(end);
            packed.set(id, &change.value, end).map_err(|_| CommandError::NotWritten)?;
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

    fn write_key(&mut self, index: usize, change: &Change) -> Result<(), CommandError> {
        let key = self.writable(index)?;
        if change.value.is_empty() {
            return key.delete().map(drop).map_err(|_| CommandError::NotWritten);
        }
        if !matches!(key.key_type(), KeyType::Empty | KeyType::String) {
            key.delete().map_err(|_| CommandError::NotWritten)?;
        }
        write_bytes(key, &change.value)?;
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
    pub(crate) fn replicate(&self, changes: &[Change], clock: Timestamp) {
        for change in changes {
            let (name, value) = (self.names[change.place.key()].as_slice(), &change.value[..]);
            if value.is_empty() {
                self.context.replicate("DEL", &[name][..]);
                continue;
            }
            if change.is_end_moved {
                let end = clock.after(change.live).as_millis().to_string();
                self.context.replicate("SET", &[name, value, b"PXAT", end.as_bytes()][..]);
            } else {
                self.context.replicate("SET", &[name, value, b"KEEPTTL"][..]);
            }
        }
    }
}

impl Keyspace for ServerKeys<'_> {
    fn load(&mut self, place: Place) -> Result<Stored, CommandError> {
        self.read(place.key(), |bytes| match (place, bytes) {
            (_, Ok(None)) => Ok(Stored::Missing),
            (Place::Key(_), Ok(Some(bytes))) => Ok(Stored::from_key(bytes)),
            (Place::Key(_), Err(())) => Ok(Stored::Foreign),
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
