//! Which of a shard's servers is right to call itself primary.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::link::{Replication, Role};

/// What servers say of themselves and sentinels of them, and what follows.
///
/// A server that was frozen while another was promoted goes on to call itself primary, for ten
/// seconds under Sentinel and for ever without it; what it is charged then is thrown away. Of two
/// that call themselves primary,
///
/// - the one is right that the sentinels name: the word of the latest epoch counts, if most of the
///   configured sentinels say it, or the server it names bears it out itself;
/// - else the one whose history goes on from where the other's was left;
/// - else nobody knows, and both are as good as before.
///
/// No word outweighs a promotion that is seen: sentinels that lie, or have not heard of it yet, keep
/// nobody at the wrong server. A promotion by mistake ends when they have the server follow again.
///
/// The one that is wrong stays deposed until it follows another, until it is announced, or until the
/// server that took over from it follows it.
#[derive(Debug)]
pub(super) struct PrimaryElection {
    /// The last that each server said of itself.
    servers: BTreeMap<Box<str>, ServerClaim>,
    /// The last that each sentinel said.
    words: BTreeMap<Box<str>, SentinelVote>,
    /// Who is not to be charged, and who took over from it.
    deposed: BTreeMap<Box<str>, Box<str>>,
    /// How many sentinels the configuration names.
    sentinels: usize,
    /// How long what was said counts.
    fresh_for: Duration,
}

/// What a server says of itself.
#[derive(Clone, Debug)]
struct ServerClaim {
    role: Role,
    /// Nothing if it does not tell.
    replication: Option<Replication>,
    at: Instant,
}

/// The server that a sentinel reports as the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentinelVote {
    /// The primary's address.
    pub(crate) primary: Box<str>,
    /// The configuration's epoch, which grows with every failover.
    pub(crate) epoch: u64,
    /// How sure it is.
    pub(crate) certainty: Confidence,
    /// Who it is that speaks.
    pub(crate) origin: SentinelOrigin,
    /// When it spoke.
    pub(crate) at: Instant,
}

/// How sure a sentinel is of the primary that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// It reaches it.
    Confirmed,
    /// It does not reach it, or has begun to replace it.
    Suspect,
}

/// Why a sentinel is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentinelOrigin {
    /// The configuration names it.
    Configured,
    /// Another sentinel named it.
    Learned,
}

impl PrimaryElection {
    /// Nothing is known yet, among so many configured sentinels. What is said counts `fresh_for`.
    pub(super) const fn new(sentinels: usize, fresh_for: Duration) -> Self {
        Self {
            servers: BTreeMap::new(),
            words: BTreeMap::new(),
            deposed: BTreeMap::new(),
            sentinels,
            fresh_for,
        }
    }

    /// The server at `address` said this of itself.
    pub(super) fn record_report(
        &mut self,
        address: &str,
        role: Role,
        server_report: Option<&Replication>,
        at: Instant,
    ) {
        if matches!(role, Role::Replica | Role::DisconnectedReplica) {
            self.deposed.remove(address);
        }
        // Who took over has given way again: the one that it follows is the primary after all.
        if let (Role::Replica, Some(server_report)) = (role, server_report) {
            let servers = &self.servers;
            self.deposed.retain(|server, by| {
                let claim = servers.get(server).and_then(|claim| claim.replication.as_ref());
                **by != *address || claim.is_none_or(|claim| claim.history != server_report.history)
            });
        }
        let claim = ServerClaim { role, replication: server_report.cloned(), at };
        self.servers.insert(address.into(), claim);
        self.judge(at);
    }

    /// A sentinel said this. True if it names another primary than it did before.
    pub(super) fn record_vote(&mut self, sentinel: &str, word: SentinelVote) -> bool {
        let at = word.at;
        let primary = word.primary.clone();
        let before = self.words.insert(sentinel.into(), word);
        self.judge(at);
        before.is_none_or(|before| before.primary != primary)
    }

    /// Forgets the servers for which `is_known` does not hold.
    pub(super) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.servers.retain(|address, _| is_known(address));
        self.deposed.retain(|address, _| is_known(address));
    }

    /// Who is not to be charged, and who took over from it.
    pub(super) const fn deposed(&self) -> &BTreeMap<Box<str>, Box<str>> {
        &self.deposed
    }

    /// The primary that the sentinels name, if they are to be believed.
    pub(super) fn named(&self, now: Instant) -> Option<&str> {
        self.winning_vote(now).map(|word| &*word.primary)
    }

    fn judge(&mut self, now: Instant) {
        let losers: Vec<(Box<str>, Box<str>)> = match self.winning_vote(now) {
            Some(word) => {
                let primary = word.primary.clone();
                self.deposed.remove(&primary);
                let others = self.leaders().filter(|(address, _)| **address != primary);
                others.map(|(address, _)| (address.clone(), primary.clone())).collect()
            }
            None => self
                .leaders()
                .filter_map(|(address, claim)| {
                    let heir = self.successor(claim, now)?;
                    Some((address.clone(), heir.into()))
                })
                .collect(),
        };
        self.deposed.extend(losers);
    }

    /// The word that counts: of the latest epoch among those that can be believed.
    fn winning_vote(&self, now: Instant) -> Option<&SentinelVote> {
        let words = self.words.values().filter(|word| self.is_fresh(word.at, now));
        words.filter(|word| self.is_believed(word, now)).max_by_key(|word| word.epoch)
    }

    fn is_believed(&self, word: &SentinelVote, now: Instant) -> bool {
        let says_so = |other: &&SentinelVote| {
            other.origin == SentinelOrigin::Configured
                && other.primary == word.primary
                && self.is_fresh(other.at, now)
        };
        let is_common = self.words.values().filter(says_so).count() > self.sentinels / 2;
        let claim = self.servers.get(&word.primary);
        // Somebody took over from the server that it names.
        let is_late = claim.is_some_and(|claim| self.successor(claim, now).is_some());
        if is_late {
            return false;
        }
        let is_sure = is_common && word.certainty == Confidence::Confirmed;
        is_sure || claim.is_some_and(|claim| self.is_confirmed(&word.primary, claim, now))
    }

    /// Whether the server of `claim` says of itself that it is the primary, of data that others of
    /// the shard have, too.
    fn is_confirmed(&self, address: &str, claim: &ServerClaim, now: Instant) -> bool {
        if claim.role != Role::Primary || !self.is_fresh(claim.at, now) {
            return false;
        }
        let Some(own) = &claim.replication else { return false };
        let others = || self.servers.iter().filter(|(other, _)| ***other != *address);
        let is_kin = |claim: &ServerClaim| {
            let server_report = claim.replication.as_ref();
            server_report.is_some_and(|server_report| {
                own.history == server_report.history || own.descends_from(&server_report.history)
            })
        };
        others().any(|(_, claim)| is_kin(claim))
            || others().all(|(_, claim)| claim.role != Role::Primary)
    }

    /// The primary whose history goes on from that of `claim`.
    fn successor(&self, claim: &ServerClaim, now: Instant) -> Option<&str> {
        let left = &claim.replication.as_ref()?.history;
        let goes_on = |heir: &ServerClaim| {
            let server_report = heir.replication.as_ref();
            self.is_fresh(heir.at, now)
                && server_report.is_some_and(|server_report| server_report.descends_from(left))
        };
        self.leaders().find(|(_, heir)| goes_on(heir)).map(|(address, _)| &**address)
    }

    /// Those that called themselves primary last.
    fn leaders(&self) -> impl Iterator<Item = (&Box<str>, &ServerClaim)> {
        self.servers.iter().filter(|(_, claim)| claim.role == Role::Primary)
    }

    fn is_fresh(&self, at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(at) <= self.fresh_for
    }
}

#[cfg(test)]
mod tests;
