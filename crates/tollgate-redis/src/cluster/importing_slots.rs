//! Nodes that own no slots yet and are called because a redirect pointed to them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::group::Group;
use crate::node_address::NodeAddress;

/// The most groups in [`ImportingGroups`] at a time. A node can make this process open a group, and
/// thereby a connection, by a redirect to an unknown address. The limit bounds the number of these
/// connections.
const MAX_IMPORTING_GROUPS: usize = 64;

/// The time without a call after which an importing group is dropped.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The groups of nodes that are in no known layout, such as a node that is about to get its first
/// slot. Each group consists of a single node.
#[derive(Debug, Default)]
pub(super) struct ImportingGroups(Mutex<Vec<ImportingGroup>>);

#[derive(Debug)]
struct ImportingGroup {
    group: Arc<Group>,
    used_at: Instant,
}

impl ImportingGroups {
    /// Returns the group of `node`. If this group does not exist yet, opens it with `open`. Returns
    /// `None` if the group does not exist and there are already [`MAX_IMPORTING_GROUPS`] groups.
    pub(super) fn get_or_open(
        &self,
        node: &NodeAddress,
        open: impl FnOnce() -> Group,
    ) -> Option<Arc<Group>> {
        let (mut importing_groups, now) = (self.0.lock(), Instant::now());
        if let Some(group) = importing_groups.iter_mut().find(|group| group.group.has(node)) {
            group.used_at = now;
            return Some(Arc::clone(&group.group));
        }
        importing_groups.retain(|group| now.saturating_duration_since(group.used_at) < IDLE_MAX);
        if importing_groups.len() >= MAX_IMPORTING_GROUPS {
            return None;
        }
        let group = Arc::new(open());
        importing_groups.push(ImportingGroup { group: Arc::clone(&group), used_at: now });
        Some(group)
    }

    /// Removes and returns a group for which `fits` returns true. Returns `None` if `fits` returns
    /// true for no group.
    pub(super) fn admit(&self, fits: impl Fn(&Group) -> bool) -> Option<Arc<Group>> {
        let mut importing_groups = self.0.lock();
        let index = importing_groups.iter().position(|group| fits(&group.group))?;
        Some(importing_groups.swap_remove(index).group)
    }

    /// Drops the groups that have not been called for [`IDLE_MAX`], and the groups for which
    /// `is_known` returns true.
    pub(super) fn clear(&self, is_known: impl Fn(&Group) -> bool) {
        let now = Instant::now();
        self.0.lock().retain(|group| {
            now.saturating_duration_since(group.used_at) < IDLE_MAX && !is_known(&group.group)
        });
    }
}
