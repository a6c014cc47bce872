//! Hash slots of cluster keys.

/// The number of slots in a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// A slot of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u16);

impl Slot {
    /// Returns the slot with this number, or `None` if the number is not below [`SLOTS`].
    pub(crate) const fn new(number: u16) -> Option<Self> {
        if number < SLOTS { Some(Self(number)) } else { None }
    }

    /// Returns the slot of `key`. The hash tag of the key selects the slot. The hash tag is the
    /// text between the first `{` and the next `}`. If the hash tag is missing or empty, the whole
    /// key selects the slot.
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(crc16(tag(key).unwrap_or(key)) % SLOTS)
    }

    /// Returns a hash tag that selects this slot: the smallest number with a decimal text in this
    /// slot.
    pub(crate) fn tag(self) -> String {
        // The hashes of numbers are evenly spread, so one of the first 200,000 numbers or so is in
        // this slot.
        let mut numbers = (0_u64..).map(|number| number.to_string());
        numbers.find(|tag| Self(crc16(tag.as_bytes()) % SLOTS) == self).unwrap_or_default()
    }

    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let opened = key.iter().position(|byte| *byte == b'{')?;
    let rest = &key[opened + 1..];
    let length = rest.iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &rest[..length])
}

/// Returns the CRC-16/XMODEM of `bytes`, as the cluster specification requires: polynomial 0x1021,
/// initial value zero, without reflection and inversion.
fn crc16(bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .fold(0, |crc: u16, byte| crc << 8 ^ REMAINDERS[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The CRC remainder of each possible first byte.
const REMAINDERS: [u16; 256] = remainders();

const fn remainders() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_the_published_one() {
        // The CRC catalogue and the cluster specification list this check value for XMODEM.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn keys_are_in_the_slots_that_servers_say() {
        // `CLUSTER KEYSLOT` returns these slots.
        for (key, slot) in [
            ("foo", 12_182),
            ("bar", 5_061),
            ("hello", 866),
            ("somekey", 11_058),
            ("foo{hash_tag}", 2_515),
            ("bar{hash_tag}", 2_515),
        ] {
            assert_eq!(Slot::of(key.as_bytes()).number(), slot, "{key}");
        }
    }

    #[test]
    fn only_the_first_tag_counts_and_only_if_it_holds_something() {
        let slot = |key: &str| Slot::of(key.as_bytes());
        assert_eq!(slot("{user1000}.following"), slot("user1000"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
        assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
        assert_ne!(slot("foo{}{bar}"), slot("bar"));
        assert_ne!(slot("foo{bar"), slot("bar"));
        assert_eq!(Slot::new(SLOTS), None);
    }

    #[test]
    fn every_slot_has_a_tag() {
        for slot in (0..SLOTS).step_by(97).filter_map(Slot::new) {
            assert_eq!(Slot::of(format!("tg1:{{{}}}", slot.tag()).as_bytes()), slot);
        }
    }
}
