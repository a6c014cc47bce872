//! Tenants: clients with a plan or quotas of their own. The row of a tenant has no expiry.
//!
//! Every node keeps all rows in memory, in [`PARTITIONS`] partitions. A hash of the tenant's name
//! selects the partition of a row. A row takes the bytes of its name and about 12 additional bytes.
//! A decision takes one lookup without a lock. A change replaces one partition.

mod batch;
mod limits;
mod partition;
mod row;
mod row_bytes;
mod store;
mod table;

pub use batch::TenantBatch;
pub use partition::{PartitionError, TenantPartition};
pub use row::{MAX_PLAN, MAX_TENANT_NAME, MAX_TENANT_QUOTAS, RowError, Tenant, TenantQuota};
pub use store::{TenantStorage, TenantStore, TenantStoreError, TenantsChanged};
pub use table::{NextPartitions, Tenants};

/// The most tenants that the table can have.
pub const MAX_TENANTS: usize = 1_000_000;

/// The number of partitions.
pub const PARTITIONS: usize = 1_024;

/// The most bytes of a partition, because memcached stores only values below 1 MiB.
pub const MAX_PARTITION_BYTES: usize = 900 * 1024;

/// Returns the hash of a tenant's name, which selects the partition and the slot of the row.
///
/// The hash of a name is the same in every process. Administrators choose the names that are
/// stored, so clients cannot make rows collide.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    // FNV-1a, and the finalizer of SplitMix64.
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Returns the index of the partition with the row of `name`.
#[must_use]
pub fn partition_of(name: &str) -> usize {
    partition_of_hash(name_hash(name.as_bytes()))
}

pub(crate) const fn partition_of_hash(hash: u64) -> usize {
    // The upper 10 bits select the partition; the lower bits select the slot.
    (hash >> 54) as usize
}

#[cfg(test)]
mod tests;
