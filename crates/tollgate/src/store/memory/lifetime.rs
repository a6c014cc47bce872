//! A length of time in 18 bits, rounded up: twelve bits of it and how far they are shifted.

use tollgate_core::Millis;

const DIGITS: u32 = 12;

/// The code of the shortest length that can be written and is not below `length`.
pub(super) const fn encode(length: Millis) -> u64 {
    let length = length.get();
    let shift = (u64::BITS - length.leading_zeros()).saturating_sub(DIGITS);
    let digits = (length >> shift) + if (length >> shift) << shift == length { 0 } else { 1 };
    // Rounding up may have made a thirteenth digit, and then the others are zero.
    if digits >> DIGITS == 0 {
        (shift as u64) << DIGITS | digits
    } else {
        (shift as u64 + 1) << DIGITS | digits >> 1
    }
}

/// The length that `code` says.
pub(super) const fn decode(code: u64) -> Millis {
    Millis::new((code & ((1 << DIGITS) - 1)) << (code >> DIGITS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_core::MAX_EXACT;

    use super::*;

    proptest! {
        #[test]
        fn a_length_is_rounded_up_by_little(length in 0..=MAX_EXACT, shift in 0..53_u32) {
            let length = length >> shift;
            let code = encode(Millis::new(length));
            prop_assert!(code < 1 << 18);
            // What rounds past the largest length counts as the largest.
            let decoded = decode(code).get();
            prop_assert!(decoded >= length && decoded - length <= length / 2048);
        }
    }

    #[test]
    fn short_lengths_are_exact() {
        for length in 0..4096 {
            assert_eq!(decode(encode(Millis::new(length))).get(), length);
        }
    }
}
