//! The places of a command for the server module: keys, and entries of tables.
//!
//! A table contains the state of many subjects. Which one depends on the name of the key that the
//! state would otherwise have. A name contains the keyed hash of its subject, so no client can
//! choose an entry.

use std::sync::LazyLock;

use siphasher::sip128::SipHasher13;

use super::push_index;
use crate::key::{PREFIX, is_revealed};

/// The number of tables of one server. All nodes that share a server must agree on it. More tables
/// are smaller, but a command then opens more keys.
pub(crate) const TABLES: usize = 16;

/// The size of the id of an entry.
const ID_BYTES: usize = 10;

/// The names of the tables. `#` occurs in no name of a limit.
static TABLE_NAMES: LazyLock<[String; TABLES]> =
    LazyLock::new(|| std::array::from_fn(|table| format!("{PREFIX}:table#{table}")));

/// A key by its name, and the code of the limit's algorithm that uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedPlace<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: u8,
}

impl NamedPlace<'_> {
    /// Returns the table and the id, if the state is in a table: states that are a few numbers.
    /// Lists have keys of their own, and so have subjects in clear text, which are listed by name.
    fn entry(&self) -> Option<(usize, [u8; ID_BYTES])> {
        let is_small = matches!(self.kind, 1 | 3 | 5);
        if !is_small || is_revealed(self.name) {
            return None;
        }
        let hash = SipHasher13::new().hash(self.name).as_bytes();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&hash[..ID_BYTES]);
        Some((usize::from(hash[ID_BYTES]) % TABLES, id))
    }
}

/// Appends the places and returns the keys of the command: the tables, and then the other keys.
pub(super) fn place_keys<'a>(places: &[NamedPlace<'a>], out: &mut Vec<u8>) -> Vec<&'a [u8]> {
    let entries: Vec<_> = places.iter().map(NamedPlace::entry).collect();
    let mut keys: Vec<&'a [u8]> = Vec::new();
    let mut indexes = [0; TABLES];
    for (table, _) in entries.iter().flatten() {
        if indexes[*table] == 0 {
            keys.push(TABLE_NAMES[*table].as_bytes());
            indexes[*table] = keys.len();
        }
    }
    push_index(out, keys.len());
    push_index(out, places.len());
    for (place, entry) in places.iter().zip(entries) {
        match entry {
            Some((table, id)) => {
                push_key(out, indexes[table]);
                out.extend_from_slice(&id);
            }
            None => {
                keys.push(place.name);
                push_key(out, keys.len());
            }
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
        for kind in [1, 3, 5] {
            assert!(place("tg1:core:{abc}", kind).entry().is_some());
            assert!(place("tg1:core~2:abc{def}", kind).entry().is_some());
            assert!(place("tg1:core:{=user=1}", kind).entry().is_none());
            assert!(place("tg1:core:=user=1{def}", kind).entry().is_none());
        }
        for kind in [2, 4, 6] {
            assert!(place("tg1:core:{abc}", kind).entry().is_none());
        }
    }

    #[test]
    fn tables_precede_the_other_keys() {
        let place = |name: &'static str, kind| NamedPlace { name: name.as_bytes(), kind };
        let places = [place("tg1:log:{abc}", 4), place("tg1:core:{abc}", 1)];
        let mut out = Vec::new();
        let keys = place_keys(&places, &mut out);
        assert_eq!((keys.len(), keys[1]), (2, &b"tg1:log:{abc}"[..]));
        assert!(keys[0].starts_with(b"tg1:table#"));
        assert_eq!(out[..10], [1, 0, 0, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!((&out[10..12], out.len()), (&[1, 0][..], 22));
    }

    #[test]
    fn each_name_has_its_own_entry() {
        let names: Vec<_> = (0..20_000).map(|number| format!("tg1:core:{{{number}}}")).collect();
        let place = |name: &String| NamedPlace { name: name.as_bytes(), kind: 1 }.entry();
        let entries: std::collections::HashSet<_> = names.iter().filter_map(place).collect();
        assert_eq!(entries.len(), names.len());
        let mut counts = [0_usize; TABLES];
        entries.iter().for_each(|(table, _)| counts[*table] += 1);
        assert!(counts.iter().all(|count| (1_000..1_500).contains(count)), "{counts:?}");
    }
}
