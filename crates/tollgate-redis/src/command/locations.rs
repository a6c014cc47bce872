//! The storage locations of a command's charges in the server module. A location is a key or an
//! entry of a table.
//!
//! A table contains the state of many subjects, each in an entry with an id. A command names only
//! the first table, and the module finds the table of each id. The id is a hash of the name that
//! the key of the state would have without tables. This name contains the keyed hash of the
//! subject, so no client can choose an entry.

use std::sync::LazyLock;

use siphasher::sip128::SipHasher13;

use super::push_index;
use crate::key::{PREFIX, is_revealed};

/// The size in bytes of the id of a table entry.
const ID_BYTES: usize = 10;

/// The name of the first table. No name of a limit contains `#`.
static FIRST_TABLE: LazyLock<String> = LazyLock::new(|| format!("{PREFIX}:table#0"));

/// The name of a key, and the code of the algorithm of the limit that uses the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedLocation<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: u8,
}

impl NamedLocation<'_> {
    /// Returns the id of the table entry, or `None` if the state has a key of its own. Sliding
    /// windows, and states of a few numbers, are stored in tables. Longer lists have keys of their
    /// own. States of subjects in clear text have keys of their own too, because a listing finds
    /// these subjects by the names of their keys.
    fn entry(&self) -> Option<[u8; ID_BYTES]> {
        let is_small = matches!(self.kind, 1 | 2 | 3 | 5);
        if !is_small || is_revealed(self.name) {
            return None;
        }
        let hash = SipHasher13::new().hash(self.name).as_bytes();
        hash.first_chunk().copied()
    }
}

/// Appends the locations to `out`, and returns the keys of the command: the first table, and then
/// the keys of the states that are not in tables.
pub(super) fn location_keys<'a>(
    locations: &[NamedLocation<'a>],
    out: &mut Vec<u8>,
) -> Vec<&'a [u8]> {
    let entries: Vec<_> = locations.iter().map(NamedLocation::entry).collect();
    let mut keys: Vec<&'a [u8]> = Vec::new();
    if entries.iter().any(Option::is_some) {
        keys.push(FIRST_TABLE.as_bytes());
    }
    push_index(out, keys.len());
    push_index(out, locations.len());
    for (location, entry) in locations.iter().zip(entries) {
        if let Some(id) = entry {
            push_key(out, 1);
            out.extend_from_slice(&id);
        } else {
            keys.push(location.name);
            push_key(out, keys.len());
        }
    }
    keys
}

/// Appends an index as two bytes. An index that does not fit is encoded as zero, which the module
/// rejects.
fn push_key(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(&u16::try_from(index).unwrap_or(0).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_states_of_hashed_subjects_are_in_tables() {
        let location = |name: &'static str, kind| NamedLocation { name: name.as_bytes(), kind };
        for kind in [1, 2, 3, 5] {
            assert!(location("tg1:core:{abc}", kind).entry().is_some());
            assert!(location("tg1:core~2:abc{def}", kind).entry().is_some());
            assert!(location("tg1:core:{=user=1}", kind).entry().is_none());
            assert!(location("tg1:core:=user=1{def}", kind).entry().is_none());
        }
        for kind in [4, 6] {
            assert!(location("tg1:core:{abc}", kind).entry().is_none());
        }
    }

    #[test]
    fn the_first_table_precedes_the_other_keys() {
        let location = |name: &'static str, kind| NamedLocation { name: name.as_bytes(), kind };
        let locations = [location("tg1:log:{abc}", 4), location("tg1:core:{abc}", 1)];
        let mut out = Vec::new();
        let keys = location_keys(&locations, &mut out);
        assert_eq!(keys, [&b"tg1:table#0"[..], b"tg1:log:{abc}"]);
        assert_eq!(out[..10], [1, 0, 0, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!((&out[10..12], out.len()), (&[1, 0][..], 22));
    }

    #[test]
    fn each_name_has_its_own_entry() {
        let names: Vec<_> = (0..20_000).map(|number| format!("tg1:core:{{{number}}}")).collect();
        let location = |name: &String| NamedLocation { name: name.as_bytes(), kind: 1 }.entry();
        let entries: std::collections::HashSet<_> = names.iter().filter_map(location).collect();
        assert_eq!(entries.len(), names.len());
        // The last byte of an id selects one of many tables.
        let ends: std::collections::HashSet<_> = entries.iter().map(|id| id[9]).collect();
        assert_eq!(ends.len(), 256);
    }
}
