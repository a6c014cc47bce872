//! Access to the server's keys: reads states and writes changes.

mod tables;

use std::collections::HashSet;
use std::time::Duration;

use redis_module::key::{RedisKey, RedisKeyWritable};
use redis_module::{Context, KeyType, RedisString};
use tollgate_core::{Millis, Timestamp};

use self::tables::{table_of, tables_of};
use crate::buffers::Change;
use crate::error::CommandError;
use crate::request::{Id, Location};
use crate::step::Keyspace;
use crate::stored::Loaded;
use crate::table::Table;

thread_local! {
    /// The option of the command `SET` with which a key gets a new expiry. Like `KEEP`, the option
    /// with which a key keeps its expiry, it is created once for all commands.
    static UNTIL: RedisString = RedisString::create_from_slice(std::ptr::null_mut(), b"PXAT");
    static KEEP: RedisString = RedisString::create_from_slice(std::ptr::null_mut(), b"KEEPTTL");
}

/// Whether a command may change keys, or only read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The way in which a primary replicates a command that changed tables. The primary sends a command
/// to its replicas and to the append-only file. Replicas execute this command when they receive it,
/// and a server executes it when it loads the append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// The primary sends the original command, because its effect does not depend on the server's
    /// clock.
    AsIs,
    /// The primary sends the command together with the time of its own clock.
    AtTime,
}

enum Opened {
    Read(RedisKey),
    Write(RedisKeyWritable),
}

/// The keys that a command has opened so far. The lists are empty between commands, and the next
/// command reuses their memory.
#[derive(Default)]
pub(crate) struct OpenKeys {
    /// The keys that the command names, by their index in the command. An element is `None` until
    /// its key is opened.
    named: Vec<Option<Opened>>,
    /// The keys that contain tables, by the number of the table. An element is `None` until its key
    /// is opened.
    tables: Vec<Option<Opened>>,
}

/// Access to the keys of one command. Each key is opened at most once, on its first use.
pub(crate) struct ServerKeys<'c> {
    context: &'c Context,
    names: &'c [RedisString],
    access: Access,
    open: &'c mut OpenKeys,
    /// The number of tables, or 0 until the first table is read.
    tables: usize,
}

impl Drop for ServerKeys<'_> {
    fn drop(&mut self) {
        self.open.named.clear();
        self.open.tables.clear();
    }
}

impl<'c> ServerKeys<'c> {
    /// Creates the access to the keys with the names `names`. No key is opened yet.
    ///
    /// # Errors
    /// [`CommandError::RepeatedKey`] if a key is named twice, because a key must not be open twice
    /// while it is written.
    pub(crate) fn new(
        context: &'c Context,
        names: &'c [RedisString],
        access: Access,
        open: &'c mut OpenKeys,
    ) -> Result<Self, CommandError> {
        const FEW: usize = 16;
        let is_repeated = if names.len() <= FEW {
            let mut seen: [&[u8]; FEW] = [&[]; FEW];
            names.len() > 1
                && names.iter().enumerate().any(|(index, name)| {
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
        open.named.resize_with(names.len(), || None);
        Ok(Self { context, names, access, open, tables: 0 })
    }

    /// Calls `read` with the value of the key with the index `key`, and returns what `read`
    /// returns. The value is `Ok(None)` if the key is missing, and an error if the key does not
    /// contain a string.
    pub(crate) fn read<T>(
        &mut self,
        key: usize,
        read: impl FnOnce(Result<Option<&[u8]>, ()>) -> T,
    ) -> T {
        self.open(key).read(read)
    }

    fn open(&mut self, key: usize) -> &Opened {
        let (context, access, name) = (self.context, self.access, &self.names[key]);
        self.open.named[key].get_or_insert_with(|| Opened::new(context, access, name))
    }

    fn writable(&mut self, key: usize) -> Result<&RedisKeyWritable, CommandError> {
        self.open(key).writable()
    }

    /// Writes `changes` to their keys and tables. The new values are ranges of `values`. `clock` is
    /// the time of the server's clock. Returns how the changes of tables must be replicated.
    ///
    /// # Errors
    /// [`CommandError`] if a table would become too large. In that case nothing is written.
    pub(crate) fn write(
        &mut self,
        changes: &mut [Change],
        values: &[u8],
        clock: Timestamp,
    ) -> Result<Repetition, CommandError> {
        let repetition = self.write_entries(changes, values, clock)?;
        for change in changes.iter().filter(|change| matches!(change.location, Location::Key(_))) {
            self.write_key(change, &values[change.value.clone()])?;
        }
        Ok(repetition)
    }

    fn write_key(&mut self, change: &Change, value: &[u8]) -> Result<(), CommandError> {
        let Location::Key(key) = change.location else { return Ok(()) };
        let key = self.writable(key)?;
        if value.is_empty() {
            return key.delete().map(drop).map_err(|_| CommandError::NotWritten);
        }
        if !matches!(key.key_type(), KeyType::Empty | KeyType::String) {
            key.delete().map_err(|_| CommandError::NotWritten)?;
        }
        write_bytes(key, value)?;
        if change.is_end_moved { expire(key, change.live.get()) } else { Ok(()) }
    }

    /// Sets the key with the index `key` to the string `value`. `live` is the time from now until
    /// the key expires.
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

    /// Replicates `changes` of keys: sends them to the replicas and to the append-only file as
    /// `SET` and `DEL`. Servers without the module can execute these commands too.
    pub(crate) fn replicate_changes(&self, changes: &[Change], values: &[u8], clock: Timestamp) {
        let context = self.context;
        // A word that is already a string of the server is not copied.
        let text = |bytes: &[u8]| RedisString::create_from_slice(context.get_raw(), bytes);
        for change in changes {
            let Location::Key(key) = change.location else { continue };
            let (name, value) = (&self.names[key], &values[change.value.clone()]);
            if value.is_empty() {
                context.replicate("DEL", &[name][..]);
                continue;
            }
            let value = text(value);
            if change.is_end_moved {
                let end = clock.after(change.live).as_millis();
                let end = text(itoa::Buffer::new().format(end).as_bytes());
                UNTIL.with(|until| context.replicate("SET", &[name, &value, until, &end][..]));
            } else {
                KEEP.with(|keep| context.replicate("SET", &[name, &value, keep][..]));
            }
        }
    }

    /// Replicates a command that changed tables: sends it to the replicas and to the append-only
    /// file as `TOLLGATE.APPLY`, with the time of the server's clock.
    pub(crate) fn replicate_command(&self, argument: &RedisString, clock: Timestamp) {
        let clock = &clock.as_millis().to_le_bytes()[..7];
        let clock = RedisString::create_from_slice(self.context.get_raw(), clock);
        if let [table] = self.names {
            self.context.replicate("TOLLGATE.APPLY", &[&clock, argument, table][..]);
            return;
        }
        let mut args = Vec::with_capacity(2 + self.names.len());
        args.extend([&clock, argument]);
        args.extend(self.names);
        self.context.replicate("TOLLGATE.APPLY", &args[..]);
    }
}

impl Keyspace for ServerKeys<'_> {
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        match location {
            Location::Key(key) => Ok(self.read(key, |bytes| {
                loaded(match bytes {
                    Ok(None) => Loaded::Missing,
                    Ok(Some(bytes)) => Loaded::Key(bytes),
                    Err(()) => Loaded::Foreign,
                })
            })),
            Location::Entry(id) => {
                let table = table_of(id, self.tables()?);
                self.read_table(table, |table| loaded(of_entry(table, id)))
            }
        }
    }

    fn load_entries(
        &mut self,
        locations: &[Location],
        mut loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError> {
        if !locations.iter().any(|location| matches!(location, Location::Entry(_))) {
            return Ok(());
        }
        self.check_first_name()?;
        self.tables = self.read_table(0, |table| {
            let tables = tables_of(table);
            // If there are several tables, each entry is loaded when it is first used.
            for location in locations.iter().filter(|_| tables == 1) {
                loaded(match *location {
                    Location::Entry(id) => Some(of_entry(table, id)),
                    Location::Key(_) => None,
                });
            }
            tables
        })?;
        Ok(())
    }

    fn is_full(&mut self, location: Location) -> bool {
        match location {
            Location::Key(_) => false,
            Location::Entry(id) => self.is_table_full(id),
        }
    }
}

impl Opened {
    fn new(context: &Context, access: Access, name: &RedisString) -> Self {
        match access {
            Access::Read => Self::Read(context.open_key(name)),
            Access::Write => Self::Write(context.open_key_writable(name)),
        }
    }

    /// Calls `read` with the value of this open key, and returns what `read` returns. The value is
    /// `Ok(None)` if the key is missing, and an error if the key does not contain a string.
    fn read<T>(&self, read: impl FnOnce(Result<Option<&[u8]>, ()>) -> T) -> T {
        match self {
            Self::Read(key) => read(key.read().map_err(drop)),
            Self::Write(key) => match key.key_type() {
                KeyType::Empty => read(Ok(None)),
                KeyType::String => match key.as_string_dma() {
                    Ok(bytes) => read(Ok(Some(&bytes))),
                    Err(_) => read(Err(())),
                },
                _ => read(Err(())),
            },
        }
    }

    const fn writable(&self) -> Result<&RedisKeyWritable, CommandError> {
        match self {
            Self::Write(key) => Ok(key),
            Self::Read(_) => Err(CommandError::Writes),
        }
    }
}

#[inline]
fn of_entry<'t>(table: Option<&'t Table<&[u8]>>, id: Id) -> Loaded<'t> {
    let found = table.and_then(|table| table.read(id));
    found.map_or(Loaded::Missing, |(value, slot)| Loaded::Entry(value, slot))
}

/// Converts milliseconds to whole seconds, rounded up. A result above `u32::MAX`, which is a time
/// in the year 2106, becomes `u32::MAX`.
fn seconds(millis: u64) -> u32 {
    u32::try_from(millis.div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// Replaces the value of a key by a new string. A new string has no spare capacity, unlike a string
/// that grows.
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
