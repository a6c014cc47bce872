//! Which node keeps which slots, as `CLUSTER SLOTS` tells it.

use std::fmt;
use std::ops::RangeInclusive;

use redis::Value;

use super::NodeAddress;
use super::slot::{SLOTS, Slot};

/// The most nodes of a cluster: each is a connection. The cluster specification goes as far.
pub const MAX_NODES: usize = 1_000;

/// Who keeps the slots of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// In the order of their first slots.
    pub(crate) groups: Vec<GroupLayout>,
}

/// A primary, what follows it, and the slots that they keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupLayout {
    pub(crate) primary: NodeAddress,
    pub(crate) replicas: Vec<NodeAddress>,
    pub(crate) slots: Vec<RangeInclusive<u16>>,
}

impl GroupLayout {
    /// The primary, then what follows it.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeAddress> {
        std::iter::once(&self.primary).chain(&self.replicas)
    }
}

impl Layout {
    /// Reads the reply to `CLUSTER SLOTS` of a node that is reached at `host`.
    ///
    /// # Errors
    /// What of it is not a layout.
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

/// The first slot, the last one, the primary, its replicas.
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
    // One that does not know its own address yet, or has none to tell, is left out.
    let mut replicas: Vec<_> =
        replicas.iter().take(MAX_NODES).filter_map(|node| read_node(node, host)).collect();
    replicas.sort_unstable();
    replicas.dedup();
    replicas.retain(|replica| *replica != primary);
    Ok((first.number()..=last.number(), primary, replicas))
}

/// The endpoint, the port; more may follow. A node without a host is where it was asked.
fn read_node(node: &Value, host: &str) -> Option<NodeAddress> {
    let Value::Array(parts) = node else { return None };
    let [endpoint, Value::Int(port), ..] = parts.as_slice() else { return None };
    let told = match endpoint {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        Value::Nil => "",
        _ => return None,
    };
    let told = if matches!(told, "" | "?") { host } else { told };
    NodeAddress::new(told, u16::try_from(*port).ok()?)
}

/// Why a reply is no layout of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// It is not made as one.
    Form,
    /// No node keeps any slot.
    Empty,
    /// A number is not one of a slot, or a range ends before it begins.
    Slot,
    /// A primary is nowhere.
    Node,
    /// There are more than [`MAX_NODES`].
    Nodes,
    /// Two nodes keep this slot.
    Overlap(u16),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("it is not what CLUSTER SLOTS answers"),
            Self::Empty => f.write_str("no node keeps any slot; create the cluster first"),
            Self::Slot => f.write_str("it tells of slots that do not exist"),
            Self::Node => f.write_str("it tells of a primary without a usable address"),
            Self::Nodes => write!(f, "it tells of more than {MAX_NODES} nodes"),
            Self::Overlap(slot) => write!(f, "two nodes keep slot {slot}"),
        }
    }
}

impl std::error::Error for LayoutError {}

#[cfg(test)]
mod tests;
