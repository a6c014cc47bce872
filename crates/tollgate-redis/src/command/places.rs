//! The places of a command for the server module: keys, and entries of tables.
//!
//! Tables contain the state of many subjects. A command names the first one, and the module finds
//! the table of each id. An id depends on the name of the key that the state would otherwise have. A
//! name contains the keyed hash of its subject, so no client can choose an entry.

use std::sync::LazyLock;

use siphasher::sip128::SipHasher13;

use super::push_index;
use crate::key::{PREFIX, is_revealed};

/// The size of the id of an entry.
const ID_BYTES: usize = 10;

/// The name of the first table. `#` occurs in no name of a limit.
static FIRST_TABLE: LazyLock<String> = LazyLock::new(|| format!("{PREFIX}:table#0"));

/// A key by its name, and the code of the limit's algorithm that uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedPlace<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: u8,
}

impl NamedPlace<'_> {
    /// Returns the id, if the state is in a table: states that are a few numbers, and sliding
    /// windows. Longer lists have keys of their own, and so have subjects in clear text, which are
    /// listed by name.
    fn entry(&self) -> Option<[u8; ID_BYTES]> {
        let is_small = matches!(self.kind, 1 | 2 | 3 | 5);
        if !is_small || is_revealed(self.name) {
            return None;
        }
        let hash = SipHasher13::new().hash(self.name).as_bytes();
        hash.first_chunk().copied()
    }
}

/// Appends the places and returns the keys of the command: the first table, and then the other keys.
pub(super) fn place_keys<'a>(places: &[NamedPlace<'a>], out: &mut Vec<u8>) -> Vec<&'a [u8]> {
    let entries: Vec<_> = places.iter().map(NamedPlace::entry).collect();
    let mut keys: Vec<&'a [u8]> = Vec::new();
    if entries.iter().any(Option::is_some) {
        keys.push(FIRST_TABLE.as_bytes());
    }
    push_index(out, keys.len());
    push_index(out, places.len());
    for (place, entry) in places.iter().zip(entries) {
        if let Some(id) = entry {
            push_key(out, 1);
            out.extend_from_slice(&id);
        } else {
            keys.push(place.name);
            push_key(out, keys.len());
        }
    }
    keys
}

/// Appends two bytes. The module rejects zero, which stands for an index that does not fit.
fn push_key(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(&u16::try_from(index).unwrap_or(0).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_states_of_hashed_subjects_are_in_tables() {
        let place = |name: &'static str, kind| NamedPlace { name: name.as_bytes(), kind };
        for kind in [1, 2, 3, 5] {
            assert!(place("tg1:core:{abc}", kind).entry().is_some());
            assert!(place("tg1:core~2:abc{def}", kind).entry().is_some());
            assert!(place("tg1:core:{=user=1}", kind).entry().is_none());
            assert!(place("tg1:core:=user=1{def}", kind).entry().is_none());
        }
        for kind in [4, 6] {
            assert!(place("tg1:core:{abc}", kind).entry().is_none());
        }
    }

    #[test]
    fn the_first_table_precedes_the_other_keys() {
        let place = |name: &'static str, kind| NamedPlace { name: name.as_bytes(), kind };
        let places = [place("tg1:log:{abc}", 4), place("tg1:core:{abc}", 1)];
        let mut out = Vec::new();
        let keys = place_keys(&places, &mut out);
        assert_eq!(keys, [&b"tg1:table#0"[..], b"tg1:log:{abc}"]);
        assert_eq!(out[..10], [1, 0, 0, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!((&out[10..12], out.len()), (&[1, 0][..], 22));
    }

    #[test]
    fn each_name_has_its_own_entry() {
        let names: Vec<_> = (0..20_000).map(|number| format!("tg1:core:{{{number}}}")).collect();
        let place = |name: &String| NamedPlace { name: name.as_bytes(), kind: 1 }.entry();
        let entries: std::collections::HashSet<_> = names.iter().filter_map(place).collect();
        assert_eq!(entries.len(), names.len());
        // The last bytes select one of many tables.
        let ends: std::collections::HashSet<_> = entries.iter().map(|id| id[9]).collect();
        assert_eq!(ends.len(), 256);
    }
}
