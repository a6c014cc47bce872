//! The election of a shard's primary among the servers that report the role of a primary.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::{EpochMark, Replication, Role};

/// Chooses the primary of a shard from the reports of the servers about themselves and the votes of
/// the sentinels.
///
/// If a server was frozen while another server was promoted, the frozen server still reports itself
/// as primary when it continues: for ten seconds with sentinels, and without end without sentinels.
/// Charges on this server are lost. If two servers report themselves as primary, the first of these
/// rules that applies chooses one of them:
///
/// - The server that the sentinels name. The vote with the latest epoch counts if most of the
///   configured sentinels agree, or if the named server confirms the vote.
/// - The server with a replication stream that continues the stream of the other server.
/// - If a configuration names the servers, the server with the greater [mark](EpochMark): a server
///   with counters is preferred to an empty server, and a later epoch to an earlier epoch. If the
///   marks are equal, the server that is configured first is used. Every node chooses the same
///   server among those that answer.
///
/// A promotion that a node observed takes precedence over every vote, so sentinels that report
/// wrong data, or have not detected the promotion yet, do not make a node stay with the wrong
/// server. After a promotion by mistake, the promoted server stays the primary until the sentinels
/// make it a replica again.
///
/// A server that was replaced is not charged until one of three events: the server becomes a
/// replica of another server, the sentinels name the server as the primary, or the server that
/// replaced it becomes its replica.
#[derive(Debug)]
pub(super) struct PrimaryElection {
    /// The last report of each server about itself.
    servers: BTreeMap<Box<str>, ServerClaim>,
    /// The last vote of each sentinel.
    votes: BTreeMap<Box<str>, SentinelVote>,
    /// The servers that must not be charged, because another server replaced them. Maps the address
    /// of each such server to the address of its successor.
    deposed: BTreeMap<Box<str>, Box<str>>,
    /// The servers that report themselves as primary and are not chosen. Maps the address of each
    /// such server to the address of the chosen server. The map is computed again after each report
    /// and vote.
    outranked: BTreeMap<Box<str>, Box<str>>,
    /// The servers in the order of the configuration, which chooses among several primaries with
    /// equal marks. `None` if marks do not choose the primary.
    order: Option<Arc<[Box<str>]>>,
    /// The number of configured sentinels.
    sentinels: usize,
    /// The time for which a report or a vote is valid.
    fresh_for: Duration,
}

/// A server's report about itself.
#[derive(Clone, Debug)]
struct ServerClaim {
    role: Role,
    /// The server's replication state. `None` if the server does not report its state.
    replication: Option<Replication>,
    mark: EpochMark,
    /// Whether the server answered the last query.
    is_reachable: bool,
    at: Instant,
}

/// A sentinel's vote: the server that the sentinel reports as the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentinelVote {
    /// The primary's address.
    pub(crate) primary: Box<str>,
    /// The epoch of the sentinel's configuration, which grows with every failover.
    pub(crate) epoch: u64,
    /// Whether the sentinel reaches the primary.
    pub(crate) certainty: Confidence,
    /// The reason why the sentinel is trusted.
    pub(crate) origin: SentinelOrigin,
    /// The time of the vote.
    pub(crate) at: Instant,
}

/// A sentinel's confidence in the primary that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// The sentinel reaches the primary.
    Confirmed,
    /// The sentinel does not reach the primary, or has started to replace it.
    Suspect,
}

/// The reason why a sentinel is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentinelOrigin {
    /// The configuration names the sentinel.
    Configured,
    /// Another sentinel named this sentinel.
    Learned,
}

impl PrimaryElection {
    /// Creates an election without reports, for a shard with this number of configured sentinels.
    /// Reports and votes are valid for `fresh_for`.
    pub(super) const fn new(sentinels: usize, fresh_for: Duration) -> Self {
        Self {
            servers: BTreeMap::new(),
            votes: BTreeMap::new(),
            deposed: BTreeMap::new(),
            outranked: BTreeMap::new(),
            order: None,
            sentinels,
            fresh_for,
        }
    }

    /// Records the report of the server at `address` about itself.
    pub(super) fn record_report(
        &mut self,
        address: &str,
        role: Role,
        server_report: Option<&Replication>,
        mark: EpochMark,
        at: Instant,
    ) {
        if matches!(role, Role::Replica | Role::DisconnectedReplica) {
            self.deposed.remove(address);
        }
        // The server at `address` replaced another server and is a replica again. If this replica
        // follows the server that it replaced, the replaced server is the primary after all.
        if let (Role::Replica, Some(server_report)) = (role, server_report) {
            let servers = &self.servers;
            self.deposed.retain(|server, by| {
                let claim = servers.get(server).and_then(|claim| claim.replication.as_ref());
                **by != *address || claim.is_none_or(|claim| claim.id != server_report.id)
            });
        }
        let claim =
            ServerClaim { role, replication: server_report.cloned(), mark, is_reachable: true, at };
        self.servers.insert(address.into(), claim);
        self.elect(at);
    }

    /// Records that the server at `address` did not answer.
    pub(super) fn record_unreachable(&mut self, address: &str, at: Instant) {
        if let Some(claim) = self.servers.get_mut(address) {
            claim.is_reachable = false;
            self.elect(at);
        }
    }

    /// From now on, the shard's [mark](EpochMark) chooses among several servers that report
    /// themselves as primary. If their marks are equal, the server that comes first in `order`, the
    /// order of the configuration, is chosen.
    pub(super) fn choose_by_mark(&mut self, order: Arc<[Box<str>]>) {
        self.order = Some(order);
    }

    /// Returns the servers that report themselves as primary and are not chosen. Maps the address
    /// of each such server to the address of the chosen server.
    pub(super) const fn outranked(&self) -> &BTreeMap<Box<str>, Box<str>> {
        &self.outranked
    }

    /// Returns the addresses of the reachable servers that report themselves as primary.
    pub(super) fn reachable_leaders(&self, now: Instant) -> Vec<String> {
        let answers = |claim: &ServerClaim| claim.is_reachable && self.is_fresh(claim.at, now);
        let leaders = self.leaders().filter(|(_, claim)| answers(claim));
        leaders.map(|(address, _)| address.to_string()).collect()
    }

    /// Returns an epoch above all known epochs. Returns `None` if the marks do not choose the
    /// primary.
    pub(super) fn next_epoch(&self) -> Option<u64> {
        self.order.as_ref()?;
        let latest = self.servers.values().map(|claim| claim.mark.epoch()).max();
        Some(latest.unwrap_or_default().saturating_add(1))
    }

    /// Records the vote of a sentinel. Returns true if the vote names another primary than the
    /// sentinel's last vote.
    pub(super) fn record_vote(&mut self, sentinel: &str, vote: SentinelVote) -> bool {
        let at = vote.at;
        let primary = vote.primary.clone();
        let before = self.votes.insert(sentinel.into(), vote);
        self.elect(at);
        before.is_none_or(|before| before.primary != primary)
    }

    /// Removes the servers for which `is_known` returns false.
    pub(super) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.servers.retain(|address, _| is_known(address));
        self.deposed.retain(|address, _| is_known(address));
    }

    /// Returns the servers that must not be charged, because another server replaced them. Maps the
    /// address of each such server to the address of its successor.
    pub(super) const fn deposed(&self) -> &BTreeMap<Box<str>, Box<str>> {
        &self.deposed
    }

    /// Returns the primary that the trusted vote with the latest epoch names, or `None` without a
    /// trusted vote.
    pub(super) fn named(&self, now: Instant) -> Option<&str> {
        self.winning_vote(now).map(|vote| &*vote.primary)
    }

    fn elect(&mut self, now: Instant) {
        let losers: Vec<(Box<str>, Box<str>)> = match self.winning_vote(now) {
            Some(vote) => {
                let primary = vote.primary.clone();
                self.deposed.remove(&primary);
                let others = self.leaders().filter(|(address, _)| **address != primary);
                others.map(|(address, _)| (address.clone(), primary.clone())).collect()
            }
            None => self
                .leaders()
                .filter_map(|(address, claim)| {
                    let successor = self.successor(claim, now)?;
                    Some((address.clone(), successor.into()))
                })
                .collect(),
        };
        self.deposed.extend(losers);
        self.outranked = self.outranked_by_mark();
    }

    /// Compares the marks of several primaries. Maps the address of each primary without the best
    /// mark to the address of the primary with the best mark. Only primaries that answered the last
    /// query and that no other server replaced are compared.
    ///
    /// An old report counts too, because an old report shows that this node was stopped: every
    /// query ends with a new report or with [`record_unreachable`](Self::record_unreachable). When
    /// the node continues, an empty server may be the first to answer.
    fn outranked_by_mark(&self) -> BTreeMap<Box<str>, Box<str>> {
        let Some(order) = &self.order else { return BTreeMap::new() };
        let rank = |address: &str| order.iter().position(|known| **known == *address);
        let is_eligible = |address: &str, claim: &ServerClaim| {
            claim.is_reachable && !self.deposed.contains_key(address)
        };
        let eligible = || self.leaders().filter(|(address, claim)| is_eligible(address, claim));
        let best = eligible().max_by_key(|(address, claim)| {
            (claim.mark, Reverse(rank(address).unwrap_or(usize::MAX)))
        });
        let Some((best, _)) = best else { return BTreeMap::new() };
        let losers = eligible().filter(|(address, _)| *address != best);
        losers.map(|(address, _)| (address.clone(), best.clone())).collect()
    }

    /// Returns the trusted vote with the latest epoch, or `None` without a trusted vote.
    fn winning_vote(&self, now: Instant) -> Option<&SentinelVote> {
        let votes = self.votes.values().filter(|vote| self.is_fresh(vote.at, now));
        votes.filter(|vote| self.is_believed(vote, now)).max_by_key(|vote| vote.epoch)
    }

    fn is_believed(&self, vote: &SentinelVote, now: Instant) -> bool {
        let says_so = |other: &&SentinelVote| {
            other.origin == SentinelOrigin::Configured
                && other.primary == vote.primary
                && self.is_fresh(other.at, now)
        };
        let is_common = self.votes.values().filter(says_so).count() > self.sentinels / 2;
        let claim = self.servers.get(&vote.primary);
        // Another server has already replaced the server that the sentinel names.
        let is_late = claim.is_some_and(|claim| self.successor(claim, now).is_some());
        if is_late {
            return false;
        }
        let is_sure = is_common && vote.certainty == Confidence::Confirmed;
        is_sure || claim.is_some_and(|claim| self.is_confirmed(&vote.primary, claim, now))
    }

    /// Returns whether the server of `claim` reports itself as the primary, and has data that other
    /// servers of the shard have too.
    fn is_confirmed(&self, address: &str, claim: &ServerClaim, now: Instant) -> bool {
        if claim.role != Role::Primary || !self.is_fresh(claim.at, now) {
            return false;
        }
        let Some(own) = &claim.replication else { return false };
        let others = || self.servers.iter().filter(|(other, _)| ***other != *address);
        let is_kin = |claim: &ServerClaim| {
            let server_report = claim.replication.as_ref();
            server_report.is_some_and(|server_report| {
                own.id == server_report.id || own.descends_from(&server_report.id)
            })
        };
        others().any(|(_, claim)| is_kin(claim))
            || others().all(|(_, claim)| claim.role != Role::Primary)
    }

    /// Returns the primary with a replication stream that continues the stream of the server of
    /// `claim`, or `None` if there is no such primary.
    fn successor(&self, claim: &ServerClaim, now: Instant) -> Option<&str> {
        let left = &claim.replication.as_ref()?.id;
        let continues_stream = |successor: &ServerClaim| {
            let server_report = successor.replication.as_ref();
            self.is_fresh(successor.at, now)
                && server_report.is_some_and(|server_report| server_report.descends_from(left))
        };
        self.leaders()
            .find(|(_, successor)| continues_stream(successor))
            .map(|(address, _)| &**address)
    }

    /// Returns the servers that last reported the role of a primary.
    fn leaders(&self) -> impl Iterator<Item = (&Box<str>, &ServerClaim)> {
        self.servers.iter().filter(|(_, claim)| claim.role == Role::Primary)
    }

    fn is_fresh(&self, at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(at) <= self.fresh_for
    }
}

#[cfg(test)]
mod tests;
