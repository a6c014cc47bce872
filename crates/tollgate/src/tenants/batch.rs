//! Changes of tenants, by partition.

use super::row::{RowError, Tenant, TenantQuota};
use super::row_bytes::{read_number, read_text, write_number, write_text};
use super::{PARTITIONS, partition_of};

/// Changes of tenants that are made together. A batch keeps the changes as bytes, which take some
/// 50 MB for a million rows.
#[derive(Clone, Debug)]
pub struct TenantBatch {
    parts: Vec<Vec<u8>>,
    changes: usize,
    replace: bool,
}

/// A change of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Set(Tenant),
    Remove(Box<str>),
}

impl Change {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Set(tenant) => &tenant.name,
            Self::Remove(name) => name,
        }
    }
}

impl Default for TenantBatch {
    fn default() -> Self {
        Self { parts: vec![Vec::new(); PARTITIONS], changes: 0, replace: false }
    }
}

impl TenantBatch {
    /// Creates a batch that removes every tenant that it does not set.
    #[must_use]
    pub fn replacing() -> Self {
        Self { replace: true, ..Self::default() }
    }

    /// Adds the row of a tenant. If the batch already has a row of this tenant, the new row
    /// replaces the earlier row.
    ///
    /// # Errors
    /// [`RowError`] if the row is invalid.
    pub fn set(&mut self, tenant: &Tenant) -> Result<(), RowError> {
        tenant.check()?;
        let bytes = &mut self.parts[partition_of(&tenant.name)];
        bytes.push(1);
        write_text(bytes, &tenant.name);
        write_text(bytes, tenant.plan.as_deref().unwrap_or_default());
        write_number(bytes, tenant.quotas.len() as u64);
        for TenantQuota { limit, quota, burst } in &tenant.quotas {
            write_text(bytes, limit);
            write_number(bytes, *quota);
            write_number(bytes, burst.map_or(0, |burst| burst + 1));
        }
        self.changes += 1;
        Ok(())
    }

    /// Removes the row of the tenant called `name`. If there is no such row, nothing changes.
    pub fn remove(&mut self, name: &str) {
        let bytes = &mut self.parts[partition_of(name)];
        bytes.push(0);
        write_text(bytes, name);
        self.changes += 1;
    }

    /// Returns the number of changes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.changes
    }

    /// Returns whether there are no changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// Returns whether every tenant that the batch does not set is removed.
    #[must_use]
    pub const fn replaces(&self) -> bool {
        self.replace
    }

    /// Returns whether the batch changes the partition with the index `partition`. `rows` is the
    /// number of rows that this partition has now.
    pub(super) fn touches(&self, partition: usize, rows: usize) -> bool {
        self.parts.get(partition).is_some_and(|part| !part.is_empty()) || self.replace && rows > 0
    }

    /// Returns the changes in the rows of the partition with the index `partition`.
    pub(super) fn changes(&self, partition: usize) -> Vec<Change> {
        let mut rest = self.parts.get(partition).map_or(&[][..], |part| &part[..]);
        std::iter::from_fn(|| read_change(&mut rest)).collect()
    }
}

fn read_change(rest: &mut &[u8]) -> Option<Change> {
    let (kind, after) = rest.split_first()?;
    *rest = after;
    let name = text(rest)?;
    if *kind == 0 {
        return Some(Change::Remove(name));
    }
    let plan = text(rest)?;
    let count = read_number(rest)?;
    let mut quotas = Vec::new();
    for _ in 0..count {
        let (limit, quota, burst) = (text(rest)?, read_number(rest)?, read_number(rest)?);
        quotas.push(TenantQuota { limit, quota, burst: burst.checked_sub(1) });
    }
    Some(Change::Set(Tenant { name, plan: (!plan.is_empty()).then_some(plan), quotas }))
}

fn text(rest: &mut &[u8]) -> Option<Box<str>> {
    Some(std::str::from_utf8(read_text(rest)?).ok()?.into())
}
