//! Redis Cluster: changes of the owners of slots, and their news.

use super::Cluster;
use crate::server::{Entry, Membership, Server, Write};

/// The part of a server's keys that one step of a move transfers: every second key.
const STEP: usize = 2;

impl Cluster {
    /// Sends the newest configuration to `server`. Has no effect without a Redis Cluster.
    pub(crate) fn gossip(&self, server: usize) {
        gossip(&mut self.servers.lock(), server);
    }

    /// Sets whether a server of a Redis Cluster refuses commands.
    pub(crate) fn set_down(&self, server: usize, is_down: bool) {
        self.with(server, |server| {
            if let Some(member) = &mut server.member {
                member.is_down = is_down;
            }
        });
    }

    /// Begins to move one half of the slots of `from` to `to`: the upper half if `is_upper` is set.
    pub(crate) fn begin_move(&self, from: usize, to: usize, is_upper: bool) {
        let servers = &mut *self.servers.lock();
        let owners = servers[from].member.as_ref().map(|member| &member.owners);
        let Some(moved) = owners.and_then(|owners| owners.half_of(from, is_upper)) else { return };
        if let Some(member) = &mut servers[from].member {
            member.migrating = Some((moved.clone(), to));
        }
        if let Some(member) = &mut servers[to].member {
            member.importing = Some(moved);
        }
    }

    /// Moves every second key of the slots that `from` is moving.
    pub(crate) fn move_keys(&self, from: usize) {
        self.move_each(from, STEP);
    }

    /// Moves all remaining keys of the slots that `from` is moving. The server that received them
    /// is then their owner. `from` and the other servers receive the news later.
    pub(crate) fn end_move(&self, from: usize) {
        if !self.move_each(from, 1) {
            return;
        }
        let servers = &mut *self.servers.lock();
        let member = servers[from].member.as_ref();
        let Some((moved, to)) = member.and_then(|member| member.migrating.clone()) else { return };
        if let Some(member) = &mut servers[to].member {
            member.owners.assign(&moved, to);
            member.importing = None;
        }
    }

    /// Makes `server` serve its moving slots as before, until it receives the newest configuration.
    pub(crate) fn keep_slots(&self, server: usize) {
        self.with(server, |server| {
            if let Some(member) = &mut server.member {
                member.migrating = None;
            }
        });
    }

    /// Moves one of every `step` keys of the slots that `from` is moving. Returns `false` if no
    /// slots are being moved, or if one of the two servers does not execute commands.
    fn move_each(&self, from: usize, step: usize) -> bool {
        let servers = &mut *self.servers.lock();
        let member = servers[from].member.as_ref();
        let Some((moved, to)) = member.and_then(|member| member.migrating.clone()) else {
            return false;
        };
        let is_ready = |server: usize| servers[server].is_alive && !*self.frozen[server].borrow();
        if !is_ready(from) || !is_ready(to) {
            return false;
        }
        [from, to].into_iter().for_each(|server| servers[server].catch_up());
        for name in servers[from].keys_in(&moved).into_iter().step_by(step) {
            let Some(entry) = servers[from].entry(&name).cloned() else { continue };
            // The remaining time to live is moved, so the two clocks may differ.
            let (here, there) = (servers[from].now().as_millis(), servers[to].now().as_millis());
            let expires_at = entry.expires_at.map(|end| there + end.saturating_sub(here));
            let entry = Some(Entry { expires_at, ..entry });
            self.write(servers, to, vec![Write::Key { name: name.clone(), entry }]);
            self.write(servers, from, vec![Write::Key { name, entry: None }]);
        }
        true
    }
}

/// Gives the slots of `before` to the promoted server `after`, which has received the newest
/// configuration. Has no effect without a Redis Cluster.
pub(super) fn take_over(servers: &mut [Server], before: usize, after: usize) {
    gossip(servers, after);
    if let Some(member) = &mut servers[after].member {
        member.owners.promote(before, after);
    }
}

/// Sends the newest configuration to `server`. Has no effect without a Redis Cluster.
fn gossip(servers: &mut [Server], server: usize) {
    let members = servers.iter().filter_map(|server| server.member.as_ref());
    let newest = members.map(|member| &member.owners).max_by_key(|owners| owners.epoch).cloned();
    if let (Some(newest), Some(member)) = (newest, &mut servers[server].member) {
        member.receive(newest);
    }
}

/// Adds `server` as a replica of `primary` to every copy of the configuration that the server has.
pub(super) fn follow(servers: &mut [Server], server: usize, primary: usize) {
    let Some(epoch) = servers[server].member.as_ref().map(|member| member.owners.epoch) else {
        return;
    };
    let members = servers.iter_mut().filter_map(|server| server.member.as_mut());
    for Membership { owners, .. } in members {
        if owners.epoch == epoch {
            owners.follow(server, primary);
        }
    }
}
