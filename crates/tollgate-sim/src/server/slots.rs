//! A server of a Redis Cluster: its view of the slots, and the redirects to other servers.

use std::ops::RangeInclusive;
use std::slice;

use super::{Reply, Role, Server};

/// The number of slots.
const SLOTS: u16 = 16_384;

/// The port of every server.
const PORT: i64 = 6_379;

/// One configuration of a Redis Cluster: the owners of all slots, and the replicas. Servers are
/// named by their indexes in the list of all servers.
#[derive(Clone, Debug)]
pub(crate) struct SlotOwners {
    /// The configuration epoch. It grows with each change of an owner.
    pub(crate) epoch: u64,
    /// Ranges of slots in ascending order, each with its owner. Together they contain every slot.
    ranges: Vec<(RangeInclusive<u16>, usize)>,
    /// For each server that is a replica, the primary that it follows.
    primaries: Vec<Option<usize>>,
}

/// The state that a server has as a member of a Redis Cluster.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// The index of the server.
    index: usize,
    /// The newest configuration that the server has received.
    pub(crate) owners: SlotOwners,
    /// The slots that are being moved from this server, and the server that receives them.
    pub(crate) migrating: Option<(RangeInclusive<u16>, usize)>,
    /// The slots that are being moved to this server.
    pub(crate) importing: Option<RangeInclusive<u16>>,
    /// Whether the server refuses commands, because the cluster does not serve all slots or the
    /// server cannot reach the majority of the primaries.
    pub(crate) is_down: bool,
}

/// The state of a connection to a server of a Redis Cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    /// Whether the last command was `ASKING`.
    is_asking: bool,
    /// Whether a replica may answer reads, which `READONLY` permits.
    is_read_only: bool,
}

impl SlotOwners {
    /// Divides all slots evenly between the servers that are no replicas. `primaries` contains for
    /// each replica its primary, and `None` for each other server.
    pub(crate) fn divided(primaries: Vec<Option<usize>>) -> Self {
        let indexes = primaries.iter().enumerate().filter(|(_, primary)| primary.is_none());
        let owners: Vec<_> = indexes.map(|(index, _)| index).collect();
        let count = owners.len() as u16;
        let start = |part: u16| if part == count { SLOTS } else { SLOTS / count * part };
        let ranges = (0..count).zip(owners);
        let ranges = ranges.map(|(part, owner)| (start(part)..=start(part + 1) - 1, owner));
        Self { epoch: 1, ranges: ranges.collect(), primaries }
    }

    fn owner(&self, slot: u16) -> usize {
        let range = self.ranges.iter().find(|(range, _)| range.contains(&slot));
        range.map_or(0, |(_, owner)| *owner)
    }

    /// Returns one half of the first range of `owner`: the upper one if `is_upper` is set.
    pub(crate) fn half_of(&self, owner: usize, is_upper: bool) -> Option<RangeInclusive<u16>> {
        let (range, _) = self.ranges.iter().find(|(_, of)| *of == owner)?;
        let middle = range.start() + (range.end() - range.start()) / 2;
        Some(if is_upper { middle + 1..=*range.end() } else { *range.start()..=middle })
    }

    /// Makes the replica `after` the primary of all slots of `before`. The server `before` is not a
    /// replica until it [follows](Self::follow) the new primary.
    pub(crate) fn promote(&mut self, before: usize, after: usize) {
        let of_before = self.ranges.iter_mut().filter(|(_, owner)| *owner == before);
        of_before.for_each(|(_, owner)| *owner = after);
        self.primaries[after] = None;
        self.epoch += 1;
    }

    /// Makes `server` a replica of `primary`.
    pub(crate) fn follow(&mut self, server: usize, primary: usize) {
        self.primaries[server] = Some(primary);
    }

    /// Makes `owner` the owner of the slots `moved`, which are a part of one range.
    pub(crate) fn assign(&mut self, moved: &RangeInclusive<u16>, owner: usize) {
        let (first, last) = (*moved.start(), *moved.end());
        let split = self.ranges.iter().position(|(range, _)| range.contains(&first));
        if let Some(split) = split {
            let (range, before) = self.ranges.remove(split);
            let (start, end) = (*range.start(), *range.end());
            let lower = (start < first).then(|| (start..=first - 1, before));
            let upper = (last < end).then(|| (last + 1..=end, before));
            let parts = lower.into_iter().chain([(moved.clone(), owner)]).chain(upper);
            self.ranges.splice(split..split, parts);
        }
        self.epoch += 1;
    }

    /// Returns the reply to `CLUSTER SLOTS`. `names` are the names of all servers.
    fn reply(&self, names: &[String]) -> Reply {
        let node =
            |server: usize| Reply::List(vec![Reply::text(&*names[server]), Reply::Number(PORT)]);
        let entry = |(range, owner): &(RangeInclusive<u16>, usize)| {
            let slots = [*range.start(), *range.end()].map(|slot| Reply::Number(slot.into()));
            let replicas =
                (0..self.primaries.len()).filter(|server| self.primaries[*server] == Some(*owner));
            let nodes = std::iter::once(*owner).chain(replicas).map(node);
            Reply::List(slots.into_iter().chain(nodes).collect())
        };
        Reply::List(self.ranges.iter().map(entry).collect())
    }
}

impl Membership {
    pub(crate) const fn new(index: usize, owners: SlotOwners) -> Self {
        Self { index, owners, migrating: None, importing: None, is_down: false }
    }

    /// Replaces the configuration by a newer one. Moves of slots that have ended in the newer
    /// configuration end for the server too. The server serves requests again.
    pub(crate) fn receive(&mut self, owners: SlotOwners) {
        let (index, owner) =
            (self.index, |slots: &RangeInclusive<u16>| owners.owner(*slots.start()));
        self.migrating = self.migrating.take().filter(|(slots, _)| owner(slots) == index);
        self.importing = self.importing.take().filter(|slots| owner(slots) != index);
        self.owners = owners;
        self.is_down = false;
    }
}

impl Server {
    /// Executes the commands that only a server of a cluster has, and returns the reply. Also
    /// returns the reply with which the server refuses a command with keys. Returns `None` if the
    /// server must execute the command. `names` are the names of all servers.
    pub(crate) fn redirect(
        &self,
        args: &[&[u8]],
        session: &mut Session,
        names: &[String],
    ) -> Option<Reply> {
        let member = self.member.as_ref()?;
        let is_asking = std::mem::take(&mut session.is_asking);
        match args {
            [b"ASKING"] => session.is_asking = true,
            [b"READONLY"] => session.is_read_only = true,
            [b"CLUSTER", b"SLOTS"] => return Some(member.owners.reply(names)),
            [b"CLUSTER", b"INFO"] => {
                let state = if member.is_down { "fail" } else { "ok" };
                let epoch = member.owners.epoch;
                let info = format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n");
                return Some(Reply::text(info));
            }
            _ => return self.redirect_keys(member, args, is_asking, session.is_read_only, names),
        }
        Some(Reply::Status("OK"))
    }

    fn redirect_keys(
        &self,
        member: &Membership,
        args: &[&[u8]],
        is_asking: bool,
        is_read_only: bool,
        names: &[String],
    ) -> Option<Reply> {
        let keys = keys(args);
        let slot = slot_of(keys.first()?);
        if keys.iter().any(|key| slot_of(key) != slot) {
            return Some(Reply::error("CROSSSLOT Keys in request don't hash to the same slot"));
        }
        if member.is_down {
            return Some(Reply::error("CLUSTERDOWN The cluster is down"));
        }
        let owner = member.owners.owner(slot);
        let moved = || Some(Reply::error(format!("MOVED {slot} {}:{PORT}", names[owner])));
        if let Role::Replica(primary) = self.role {
            let is_read = matches!(args[0], b"MGET" | b"EXISTS" | b"FCALL_RO" | b"EVALSHA_RO");
            return if is_read_only && is_read && owner == primary { None } else { moved() };
        }
        let missing = keys.iter().filter(|key| self.entry(key).is_none()).count();
        let try_again =
            || Some(Reply::error("TRYAGAIN Multiple keys request during rehashing of slot"));
        if owner == member.index {
            let to = member.migrating.as_ref().filter(|(slots, _)| slots.contains(&slot));
            return match to {
                Some((_, to)) if missing == keys.len() => {
                    Some(Reply::error(format!("ASK {slot} {}:{PORT}", names[*to])))
                }
                Some(_) if missing > 0 => try_again(),
                _ => None,
            };
        }
        let is_importing = member.importing.as_ref().is_some_and(|slots| slots.contains(&slot));
        match is_asking && is_importing {
            true if keys.len() > 1 && missing > 0 => try_again(),
            true => None,
            false => moved(),
        }
    }

    /// Returns the names of the keys in `slots` that have not expired.
    pub(crate) fn keys_in(&self, slots: &RangeInclusive<u16>) -> Vec<Vec<u8>> {
        let is_live = |name: &&Vec<u8>| self.entry(name).is_some();
        let names = self.keys.keys().filter(|name| slots.contains(&slot_of(name)));
        names.filter(is_live).cloned().collect()
    }
}

/// Returns the keys of a command.
fn keys<'a, 'b>(args: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
    match args {
        [b"MGET" | b"EXISTS", keys @ ..] => keys,
        [b"SET" | b"PEXPIRE", key, ..] => slice::from_ref(key),
        [b"FCALL" | b"FCALL_RO" | b"EVALSHA" | b"EVALSHA_RO", _, count, rest @ ..] => {
            let count = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
            count.and_then(|count: usize| rest.get(..count)).unwrap_or_default()
        }
        _ => &[],
    }
}

/// Returns the slot of a key: the CRC-16/XMODEM of its hash tag, or of the whole key.
fn slot_of(key: &[u8]) -> u16 {
    let tag = || {
        let start = key.iter().position(|byte| *byte == b'{')? + 1;
        let length = key[start..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &key[start..start + length])
    };
    let crc = tag().unwrap_or(key).iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    });
    crc % SLOTS
}
