//! The model of a Redis server: its data, its role, and the commands that it executes.

mod commands;
mod keys;
pub(crate) mod memcached;
mod resp;
mod slots;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::Timestamp;

pub(crate) use resp::{Args, Malformed, Reply, command};
pub(crate) use slots::{Membership, Session, SlotOwners};

use crate::clock::shown;

/// A stored value, and the time at which it expires by the server's clock, in ms.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) expires_at: Option<u64>,
}

/// The role of a server in replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Primary,
    /// The server is a replica of the server with this index.
    Replica(usize),
}

/// A write in the form in which a primary sends it to its replicas.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Key { name: Vec<u8>, entry: Option<Entry> },
    Library(String),
    Flush,
}

/// A simulated server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) shard: usize,
    pub(crate) is_alive: bool,
    pub(crate) role: Role,
    start: Instant,
    /// The time of the command that the server executes.
    current: Instant,
    /// How far the server's clock is ahead of the world's time, in ms.
    clock_offset: i64,
    keys: BTreeMap<Vec<u8>, Entry>,
    /// The name of the loaded library, with which the names of all its functions begin.
    library: Option<String>,
    scripts: BTreeSet<String>,
    /// Whether the server is out of memory.
    pub(crate) is_full: bool,
    /// Whether the server is busy with a script that does not end.
    pub(crate) is_busy: bool,
    /// The number of keys that were removed to free memory.
    evicted: u64,
    /// The number of times that all keys were deleted.
    flushes: u64,
    /// The id of the replication stream of the server's data. If this stream continues an earlier
    /// one, the field `origin` contains the id of the earlier stream and the first offset that
    /// belongs to this stream.
    replication_id: u64,
    origin: Option<(u64, u64)>,
    offset: u64,
    /// The writes of the primary that this replica has not applied yet, with their times of
    /// arrival.
    stream: VecDeque<(Instant, Write)>,
    /// Whether the replica receives no writes of its primary.
    is_detached: bool,
    /// The state of the server as a member of a Redis Cluster, if it is one.
    pub(crate) member: Option<Membership>,
}

/// The number of bytes that one write adds to the replication stream.
const WRITE_BYTES: u64 = 100;

impl Server {
    pub(crate) fn new(name: String, shard: usize, start: Instant, clock_offset: i64) -> Self {
        Self {
            name,
            shard,
            is_alive: true,
            role: Role::Primary,
            start,
            current: start,
            clock_offset,
            keys: BTreeMap::new(),
            library: None,
            scripts: BTreeSet::new(),
            is_full: false,
            is_busy: false,
            evicted: 0,
            flushes: 0,
            replication_id: 0,
            origin: None,
            offset: 0,
            stream: VecDeque::new(),
            is_detached: false,
            member: None,
        }
    }

    /// Returns the time that the server's clock shows during the current command.
    pub(crate) fn now(&self) -> Timestamp {
        shown(self.start, self.current, self.clock_offset)
    }

    /// Sets the server's clock ahead by `millis`, or back if `millis` is negative.
    pub(crate) fn step_clock(&mut self, millis: i64) {
        self.clock_offset += millis;
    }

    /// Makes the server a primary with a new replication stream, which has the id `replication_id`.
    pub(crate) fn lead(&mut self, replication_id: u64) {
        self.catch_up();
        let before = (self.replication_id > 0).then_some((self.replication_id, self.offset + 1));
        (self.role, self.replication_id, self.origin) = (Role::Primary, replication_id, before);
        self.stream.clear();
    }

    /// Makes the server a replica of `primary`, with a copy of the primary's data. `index` is the
    /// index of the primary.
    pub(crate) fn follow(&mut self, index: usize, primary: &Self) {
        self.role = Role::Replica(index);
        self.keys = primary.keys.clone();
        self.library.clone_from(&primary.library);
        (self.replication_id, self.origin, self.offset) =
            (primary.replication_id, primary.origin, primary.offset);
        self.stream.clear();
        self.is_detached = false;
    }

    /// Starts the server again. The server keeps its data if `has_data` is set, and always loses
    /// its scripts. If the server is a primary, it begins the new replication stream with the id
    /// `replication_id`.
    pub(crate) fn restart(&mut self, has_data: bool, replication_id: u64) {
        self.is_alive = true;
        self.scripts.clear();
        if !has_data {
            self.keys.clear();
            self.library = None;
        }
        if self.role == Role::Primary {
            (self.replication_id, self.origin, self.offset) = (replication_id, None, 0);
        }
    }

    /// Removes the loaded scripts and functions.
    pub(crate) fn forget_step(&mut self) {
        self.scripts.clear();
        self.library = None;
    }

    /// Returns the writes that remove every second key, as a server does that is out of memory. The
    /// caller must apply the writes.
    pub(crate) fn evict(&mut self) -> Vec<Write> {
        self.catch_up();
        let removed = self.keys.keys().step_by(2).cloned();
        let writes: Vec<_> = removed.map(|name| Write::Key { name, entry: None }).collect();
        self.evicted += writes.len() as u64;
        writes
    }

    /// Adds a write of the primary to the stream. It arrives after `delay`.
    pub(crate) fn receive(&mut self, write: Write, delay: Duration) {
        self.stream.push_back((Instant::now() + delay, write));
    }

    /// Ends or resumes the replication to this server. The server keeps the writes that have arrived
    /// before.
    pub(crate) fn set_detached(&mut self, on: bool) {
        self.catch_up();
        self.is_detached = on;
    }

    /// Applies the writes of the primary that have arrived by now.
    pub(crate) fn catch_up(&mut self) {
        let now = Instant::now();
        self.current = now;
        while !self.is_detached && self.stream.front().is_some_and(|(arrives, _)| *arrives <= now) {
            let Some((_, write)) = self.stream.pop_front() else { return };
            self.apply(write);
        }
    }

    /// Applies a write. It comes from a client, or from the primary if this server is a replica.
    pub(crate) fn apply(&mut self, write: Write) {
        self.offset += WRITE_BYTES;
        match write {
            Write::Key { name, entry: Some(entry) } => {
                self.keys.insert(name, entry);
            }
            Write::Key { name, entry: None } => {
                self.keys.remove(&name);
            }
            Write::Library(name) => self.library = Some(name),
            Write::Flush => {
                self.flushes += 1;
                self.keys.clear();
            }
        }
    }

    /// Returns the entry of the key `name`, unless it is missing or expired.
    pub(crate) fn entry(&self, name: &[u8]) -> Option<&Entry> {
        let is_live = |end| self.now().as_millis() < end;
        self.keys.get(name).filter(|entry| entry.expires_at.is_none_or(is_live))
    }
}
