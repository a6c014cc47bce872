//! Encodes rows as bytes: the tenant's name, the index of the plan's name, and the quotas with the
//! indices of their limits' names.
//!
//! Numbers are LEB128: seven bits per byte, the lowest first.

use super::row::{Tenant, TenantQuota};

/// The most bytes of a number in LEB128.
const MAX_NUMBER: u32 = 10;

/// Appends `number` in LEB128 to `bytes`.
pub(super) fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number in LEB128 from the start of `rest`, and shortens `rest` by its bytes. Returns
/// `None` if the bytes are not a number.
pub(super) fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for index in 0..MAX_NUMBER {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(7 * index)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends to `bytes` the length of `text` and `text`, which has at most 255 bytes.
pub(super) fn write_text(bytes: &mut Vec<u8>, text: &str) {
    // Every text is checked before it is written.
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    bytes.push(length);
    bytes.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// Reads a text from the start of `rest`, and shortens `rest` by its bytes. Returns `None` if the
/// text is incomplete.
pub(super) fn read_text<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first()?;
    let (text, after) = after.split_at_checked(usize::from(*length))?;
    *rest = after;
    Some(text)
}

/// Appends a row. `word` returns the index of the name of a plan or limit, and adds a new name to
/// the list of names.
pub(super) fn write_row(bytes: &mut Vec<u8>, row: &Tenant, mut word: impl FnMut(&str) -> u64) {
    write_text(bytes, &row.name);
    let plan = row.plan.as_deref().map_or(0, |plan| word(plan) + 1);
    write_number(bytes, plan);
    write_number(bytes, row.quotas.len() as u64);
    for TenantQuota { limit, quota, burst } in &row.quotas {
        write_number(bytes, word(limit));
        write_number(bytes, *quota);
        write_number(bytes, burst.map_or(0, |burst| burst + 1));
    }
}

/// A row, read from the bytes in which it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowView<'b> {
    pub(super) name: &'b [u8],
    /// The index of the plan's name in the partition's list of names, if the tenant has a plan.
    pub(super) plan: Option<usize>,
    quotas: u64,
    rest: &'b [u8],
}

impl<'b> RowView<'b> {
    /// Reads the row at the start of `rest`, without its quotas.
    pub(super) fn read(mut rest: &'b [u8]) -> Option<Self> {
        let name = read_text(&mut rest)?;
        let plan = read_number(&mut rest)?.checked_sub(1);
        let plan = plan.and_then(|plan| usize::try_from(plan).ok());
        let quotas = read_number(&mut rest)?;
        Some(Self { name, plan, quotas, rest })
    }

    /// Returns the quotas. Each has the index of the limit's name, the quota, and the burst.
    pub(super) fn quotas(&self) -> Quotas<'b> {
        Quotas { left: self.quotas, rest: self.rest }
    }
}

/// The quotas of a row.
pub(super) struct Quotas<'b> {
    left: u64,
    pub(super) rest: &'b [u8],
}

impl Quotas<'_> {
    /// Returns whether all quotas were read.
    pub(super) const fn is_complete(&self) -> bool {
        self.left == 0
    }
}

impl Iterator for Quotas<'_> {
    type Item = (usize, u64, Option<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let limit = usize::try_from(read_number(&mut self.rest)?).ok()?;
        let (quota, burst) = (read_number(&mut self.rest)?, read_number(&mut self.rest)?);
        self.left -= 1;
        Some((limit, quota, burst.checked_sub(1)))
    }
}
