//! A partition of the table of tenants: the rows that the hash of the tenant's name selects, sorted
//! by name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

use super::batch::Change;
use super::row::{MAX_TENANT_QUOTAS, Tenant, TenantQuota};
use super::row_bytes::{RowView, read_number, read_text, write_number, write_row, write_text};
use super::{MAX_PARTITION_BYTES, MAX_TENANTS, name_hash};
use crate::overrides::TableVersion;

/// The first byte of a partition: the version of the format.
const FORMAT: u8 = 1;

/// The value of a slot without a row.
const EMPTY: u32 = u32::MAX;

/// One version of the rows of a partition. A version is immutable: a change creates the next
/// version.
///
/// The rows are kept in the encoding in which stores keep them. A table of slots, at most two
/// thirds full, has the index of each row in the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct TenantPartition {
    version: TableVersion,
    /// The time at which the partition was written, in seconds since the Unix epoch.
    written_at: u64,
    /// The names of plans and limits, to which the rows refer by their indices in this list.
    names: Box<[Box<str>]>,
    bytes: Box<[u8]>,
    /// The index of the first row in the bytes.
    first: usize,
    rows: usize,
    slots: Box<[u32]>,
}

/// The reason why a partition cannot be read or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError {
    /// The bytes are not a partition in the format of this version. Another version of this
    /// program, or another program, may have written the bytes.
    Garbled,
    /// The partition would have more than [`MAX_PARTITION_BYTES`].
    Full,
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbled => f.write_str(
                "a part of the tenants is not of this version of the program: use the same version \
                 on all nodes",
            ),
            Self::Full => write!(
                f,
                "a part of the tenants would exceed {MAX_PARTITION_BYTES} bytes: use shorter names \
                 or fewer own quotas"
            ),
        }
    }
}

impl std::error::Error for PartitionError {}

impl TenantPartition {
    /// Decodes the bytes of a partition. The partition gets the version `version`.
    ///
    /// # Errors
    /// [`PartitionError::Garbled`] for bytes that [`as_bytes`](Self::as_bytes) did not return.
    pub fn from_bytes(version: TableVersion, bytes: Vec<u8>) -> Result<Self, PartitionError> {
        Self::read(version, bytes).ok_or(PartitionError::Garbled)
    }

    fn read(version: TableVersion, bytes: Vec<u8>) -> Option<Self> {
        let mut rest = &bytes[..];
        let (&FORMAT, after) = rest.split_first()? else { return None };
        rest = after;
        let written_at = read_number(&mut rest)?;
        let names = usize::try_from(read_number(&mut rest)?).ok()?;
        let mut read_word = || Some(std::str::from_utf8(read_text(&mut rest)?).ok()?.into());
        let names = (0..names).map(|_| read_word()).collect::<Option<Box<[Box<str>]>>>()?;
        let rows = usize::try_from(read_number(&mut rest)?).ok()?;
        // A row has at least three bytes.
        if rows > MAX_TENANTS || rows > rest.len() / 3 || bytes.len() > MAX_PARTITION_BYTES {
            return None;
        }
        let first = bytes.len() - rest.len();
        let mut slots = slots(rows);
        let mut before: &[u8] = &[];
        for _ in 0..rows {
            let at = bytes.len() - rest.len();
            let row = RowView::read(rest)?;
            let mut quotas = row.quotas();
            let are_known = quotas.by_ref().all(|(word, ..)| word < names.len());
            let is_known = row.plan.is_none_or(|plan| plan < names.len());
            let is_next = before < row.name && std::str::from_utf8(row.name).is_ok();
            if !are_known || !is_known || !is_next || !quotas.is_complete() {
                return None;
            }
            (before, rest) = (row.name, quotas.rest);
            insert(&mut slots, row.name, u32::try_from(at).ok()?);
        }
        let is_whole = rest.is_empty();
        let bytes = bytes.into_boxed_slice();
        is_whole.then_some(Self { version, written_at, names, bytes, first, rows, slots })
    }

    /// Returns the partition that results from `changes` to the rows of `old`. If `replace` is set,
    /// the result has only the rows that `changes` set.
    ///
    /// # Errors
    /// [`PartitionError::Full`] if the rows do not fit.
    pub(crate) fn merged(
        old: Option<&Self>,
        mut changes: Vec<Change>,
        replace: bool,
        (version, written_at): (TableVersion, u64),
    ) -> Result<Self, PartitionError> {
        // If one tenant has several changes, the last change counts, because the sort is stable.
        changes.sort_by(|one, other| one.name().cmp(other.name()));
        let mut rows = Rows::default();
        let mut kept = old.filter(|_| !replace).into_iter().flat_map(Self::tenants).peekable();
        let mut changes = changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            if changes.peek().is_some_and(|next| next.name() == change.name()) {
                continue;
            }
            while let Some(row) = kept.next_if(|row| *row.name < *change.name()) {
                rows.push(&row);
            }
            kept.next_if(|row| row.name.as_ref().cmp(change.name()) == Ordering::Equal);
            if let Change::Set(row) = &change {
                rows.push(row);
            }
        }
        kept.for_each(|row| rows.push(&row));
        let bytes = rows.into_bytes(written_at);
        if bytes.len() > MAX_PARTITION_BYTES {
            return Err(PartitionError::Full);
        }
        Self::from_bytes(version, bytes)
    }

    /// Returns the version of the partition.
    #[must_use]
    pub const fn version(&self) -> TableVersion {
        self.version
    }

    /// Returns when the rows were written, in seconds since the Unix epoch.
    #[must_use]
    pub const fn written_at(&self) -> u64 {
        self.written_at
    }

    /// Returns the rows as bytes, without the version.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the bytes that the rows and their slots use in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let names: usize = self.names.iter().map(|word| word.len() + size_of::<Box<str>>()).sum();
        size_of::<Self>() + self.bytes.len() + size_of_val(&*self.slots) + names
    }

    /// Returns the tenant called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tenant> {
        let row = self.find(name.as_bytes(), name_hash(name.as_bytes()))?;
        Some(self.tenant(&row))
    }

    /// Returns the tenants, sorted by name.
    pub fn tenants(&self) -> impl Iterator<Item = Tenant> + '_ {
        self.views().map(|row| self.tenant(&row))
    }

    /// Returns the tenants with a name that starts with `prefix` and follows `after` in the order
    /// of names. If `after` is `None`, the list begins with the first name.
    pub fn listed<'p>(
        &'p self,
        prefix: &'p str,
        after: Option<&'p str>,
    ) -> impl Iterator<Item = Tenant> + 'p {
        let is_listed = move |row: &RowView<'_>| {
            row.name.starts_with(prefix.as_bytes())
                && after.is_none_or(|after| row.name > after.as_bytes())
        };
        self.views().filter(is_listed).map(|row| self.tenant(&row))
    }

    fn views(&self) -> impl Iterator<Item = RowView<'_>> {
        let mut rest = &self.bytes[self.first..];
        std::iter::from_fn(move || {
            let row = RowView::read(rest)?;
            let mut quotas = row.quotas();
            quotas.by_ref().for_each(drop);
            rest = quotas.rest;
            Some(row)
        })
    }

    fn tenant(&self, row: &RowView<'_>) -> Tenant {
        let word = |index: usize| self.word(index).unwrap_or_default().into();
        let quotas = row.quotas().map(|(limit, quota, burst)| TenantQuota {
            limit: word(limit),
            quota,
            burst,
        });
        let name = String::from_utf8_lossy(row.name).into_owned().into();
        Tenant { name, plan: row.plan.map(word), quotas: quotas.collect() }
    }

    /// Returns the name of the plan or limit with this index in the list of names, or `None` if the
    /// list has no such index.
    pub(super) fn word(&self, index: usize) -> Option<&str> {
        self.names.get(index).map(|word| &**word)
    }

    /// Returns the row of `name`, which has this `hash`.
    pub(super) fn find(&self, name: &[u8], hash: u64) -> Option<RowView<'_>> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = slot(hash) & mask;
        loop {
            let position = *self.slots.get(at)?;
            if position == EMPTY {
                return None;
            }
            let row = RowView::read(self.bytes.get(position as usize..)?)?;
            if row.name == name {
                return Some(row);
            }
            at = (at + 1) & mask;
        }
    }
}

impl fmt::Debug for TenantPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, rows) = (self.version, self.rows);
        f.debug_struct("TenantPartition").field("version", &version).field("rows", &rows).finish()
    }
}

/// Returns an empty table of slots. With `rows` rows, the table will be at most two thirds full.
fn slots(rows: usize) -> Box<[u32]> {
    let count = (rows + rows / 2 + 1).next_power_of_two();
    vec![EMPTY; count].into_boxed_slice()
}

const fn slot(hash: u64) -> usize {
    (hash & 0xffff_ffff) as usize
}

fn insert(slots: &mut [u32], name: &[u8], position: u32) {
    let mask = slots.len() - 1;
    let mut at = slot(name_hash(name)) & mask;
    while slots[at] != EMPTY {
        at = (at + 1) & mask;
    }
    slots[at] = position;
}

/// The rows of a partition while the partition is built.
#[derive(Default)]
struct Rows {
    names: Vec<Box<str>>,
    indices: HashMap<Box<str>, u64>,
    rows: u64,
    bytes: Vec<u8>,
}

impl Rows {
    fn push(&mut self, row: &Tenant) {
        let Self { names, indices, rows, bytes } = self;
        write_row(bytes, row, |word| match indices.get(word) {
            Some(index) => *index,
            None => {
                let index = names.len() as u64;
                names.push(word.into());
                indices.insert(word.into(), index);
                index
            }
        });
        *rows += 1;
    }

    fn into_bytes(self, written_at: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 64);
        bytes.push(FORMAT);
        write_number(&mut bytes, written_at);
        write_number(&mut bytes, self.names.len() as u64);
        self.names.iter().for_each(|word| write_text(&mut bytes, word));
        write_number(&mut bytes, self.rows);
        bytes.extend(self.bytes);
        bytes
    }
}

const _: () = assert!(MAX_TENANT_QUOTAS < 128, "the number of quotas is one byte");
