//! The index of tenants: one small document with the version of every partition.

use std::collections::BTreeMap;

use tollgate::overrides::TableVersion;
use tollgate::tenants::PARTITIONS;

/// The size of one entry in bytes. An entry consists of the number of a partition and the
/// partition's version.
const ENTRY: usize = 2 + 16;

/// The versions of the partitions that were ever written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index(pub(super) BTreeMap<usize, TableVersion>);

impl Index {
    /// Encodes the index in at most 18 KiB.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let entry = |(partition, version): (&usize, &TableVersion)| {
            let mut bytes = [0; ENTRY];
            // The number of a partition always fits into 16 bits, because there are fewer
            // partitions.
            let partition = u16::try_from(*partition).unwrap_or(u16::MAX);
            bytes[..2].copy_from_slice(&partition.to_be_bytes());
            bytes[2..10].copy_from_slice(&version.changes.to_be_bytes());
            bytes[10..].copy_from_slice(&version.drawn.to_be_bytes());
            bytes
        };
        self.0.iter().flat_map(entry).collect()
    }

    /// Decodes an index. Returns `None` if another program wrote the bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<ENTRY>();
        let entry = |bytes: &[u8; ENTRY]| {
            let [high, low, version @ ..] = *bytes;
            let partition = usize::from(u16::from_be_bytes([high, low]));
            let version = version_of(&version)?;
            (partition < PARTITIONS).then_some((partition, version))
        };
        let entries = entries.iter().map(entry).collect::<Option<BTreeMap<_, _>>>()?;
        rest.is_empty().then_some(Self(entries))
    }
}

/// Decodes a version. Returns `None` if the bytes do not have the length of a version.
pub(super) fn version_of(bytes: &[u8]) -> Option<TableVersion> {
    let (changes, rest) = bytes.split_first_chunk()?;
    let drawn = rest.try_into().ok()?;
    Some(TableVersion { changes: u64::from_be_bytes(*changes), drawn: u64::from_be_bytes(drawn) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_as_it_was_written_and_junk_is_none() {
        let version = |changes, drawn| TableVersion { changes, drawn };
        let index = Index([(0, version(1, 2)), (1_023, version(u64::MAX, 0))].into());
        let bytes = index.to_bytes();
        assert_eq!(Index::from_bytes(&bytes), Some(index));
        assert_eq!(Index::from_bytes(&[]), Some(Index::default()));
        assert_eq!(Index::from_bytes(&bytes[1..]), None);
        assert_eq!(Index::from_bytes(&[0xff; ENTRY]), None);
    }
}
