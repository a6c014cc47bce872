//! The assignment of slots to nodes, as `CLUSTER SLOTS` reports it.

use std::fmt;
use std::ops::RangeInclusive;

use redis::Value;

use crate::node_address::NodeAddress;
use crate::slot::{SLOTS, Slot};

/// The most nodes of a cluster. Each node needs a connection. The cluster specification has the
/// same limit.
pub const MAX_NODES: usize = 1_000;

/// The assignment of a cluster's slots to groups of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The groups, in the order of their first slots.
    pub(crate) groups: Vec<GroupLayout>,
}

/// A primary, its replicas, and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupLayout {
    pub(crate) primary: NodeAddress,
    pub(crate) replicas: Vec<NodeAddress>,
    pub(crate) slots: Vec<RangeInclusive<u16>>,
}

impl GroupLayout {
    /// Returns the primary, then its replicas.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeAddress> {
        std::iter::once(&self.primary).chain(&self.replicas)
    }
}

impl Layout {
    /// Parses the reply to `CLUSTER SLOTS` of the node at `host`.
    ///
    /// # Errors
    /// [`LayoutError`] if the reply is not a usable layout.
    pub(crate) fn read(reply: &Value, host: &str) -> Result<Self, LayoutError> {
        let Value::Array(entries) = reply else { return Err(LayoutError::Form) };
        if entries.len() > usize::from(SLOTS) {
            return Err(LayoutError::Form);
        }
        let mut groups: Vec<GroupLayout> = Vec::new();
        let mut taken = vec![false; usize::from(SLOTS)];
        let mut nodes = 0;
        for entry in entries {
            let (range, primary, replicas) = read_entry(entry, host)?;
            for slot in range.clone() {
                if std::mem::replace(&mut taken[usize::from(slot)], true) {
                    return Err(LayoutError::Overlap(slot));
                }
            }
            if let Some(group) = groups.iter_mut().find(|group| group.primary == primary) {
                group.slots.push(range);
                continue;
            }
            nodes += 1 + replicas.len();
            if nodes > MAX_NODES {
                return Err(LayoutError::Nodes);
            }
            groups.push(GroupLayout { primary, replicas, slots: vec![range] });
        }
        if groups.is_empty() {
            return Err(LayoutError::Empty);
        }
        groups.sort_by_key(|group| group.slots.iter().map(|range| *range.start()).min());
        Ok(Self { groups })
    }
}

type Entry = (RangeInclusive<u16>, NodeAddress, Vec<NodeAddress>);

/// Parses an entry of the reply: a range of slots, the primary of these slots, and its replicas.
fn read_entry(entry: &Value, host: &str) -> Result<Entry, LayoutError> {
    let Value::Array(parts) = entry else { return Err(LayoutError::Form) };
    let [first, last, primary, replicas @ ..] = parts.as_slice() else {
        return Err(LayoutError::Form);
    };
    let slot = |value: &Value| match value {
        Value::Int(number) => u16::try_from(*number).ok().and_then(Slot::new),
        _ => None,
    };
    let (Some(first), Some(last)) = (slot(first), slot(last)) else {
        return Err(LayoutError::Slot);
    };
    if first > last {
        return Err(LayoutError::Slot);
    }
    let primary = read_node(primary, host).ok_or(LayoutError::Node)?;
    // Replicas without a usable address are left out.
    let mut replicas: Vec<_> =
        replicas.iter().take(MAX_NODES).filter_map(|node| read_node(node, host)).collect();
    replicas.sort_unstable();
    replicas.dedup();
    replicas.retain(|replica| *replica != primary);
    Ok((first.number()..=last.number(), primary, replicas))
}

/// Parses a node of an entry: an endpoint, a port, and further fields, which are ignored. If the
/// reply contains no endpoint for the node, the node gets `host`, the host of the server that sent
/// the reply. Returns `None` if the node has no usable address.
fn read_node(node: &Value, host: &str) -> Option<NodeAddress> {
    let Value::Array(parts) = node else { return None };
    let [endpoint, Value::Int(port), ..] = parts.as_slice() else { return None };
    let host_name = match endpoint {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        Value::Nil => "",
        _ => return None,
    };
    let host_name = if matches!(host_name, "" | "?") { host } else { host_name };
    NodeAddress::new(host_name, u16::try_from(*port).ok()?)
}

/// The reason why a reply is not a cluster layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// The reply does not have the structure of a cluster layout.
    Form,
    /// No node owns any slot.
    Empty,
    /// A number is not the number of a slot, or a range of slots ends before its beginning.
    Slot,
    /// A primary has no usable address.
    Node,
    /// The layout has more than [`MAX_NODES`] nodes.
    Nodes,
    /// The slot with this number has two owners.
    Overlap(u16),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("the reply does not have the form of CLUSTER SLOTS"),
            Self::Empty => f.write_str("no node owns a slot; create the cluster first"),
            Self::Slot => f.write_str("the reply contains slots that do not exist"),
            Self::Node => f.write_str("a primary has no usable address"),
            Self::Nodes => write!(f, "there are more than {MAX_NODES} nodes"),
            Self::Overlap(slot) => write!(f, "two nodes own slot {slot}"),
        }
    }
}

impl std::error::Error for LayoutError {}

#[cfg(test)]
mod tests;
