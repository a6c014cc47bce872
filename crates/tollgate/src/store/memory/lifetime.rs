//! An encoding of durations in ten bits, similar to a floating-point number. Encoding rounds up.
//! The code contains the five leading binary digits of the duration, except the first digit, which
//! is always one. The rest of the code is the number of bits by which the digits are shifted.

use tollgate_core::Millis;

/// The number of bits of a code.
pub(super) const BITS: u32 = 10;

/// The number of binary digits that a code stores. The leading one of a duration is not stored.
const DIGITS: u32 = 4;
const LEADING: u64 = 1 << DIGITS;

/// Returns the code of the shortest duration that can be encoded and is not below `length`.
pub(super) const fn encode(length: Millis) -> u64 {
    let length = length.get();
    if length < LEADING {
        return length;
    }
    let shift = u64::BITS - length.leading_zeros() - 1 - DIGITS;
    let digits = (length >> shift) + if (length >> shift) << shift == length { 0 } else { 1 };
    // If rounding up carries into one more digit, the shift is one larger, and the digits are zero.
    ((shift as u64 + 1) << DIGITS) + (digits - LEADING)
}

/// Returns the duration that `code` represents.
pub(super) const fn decode(code: u64) -> Millis {
    if code < LEADING {
        return Millis::new(code);
    }
    let digits = LEADING | (code & (LEADING - 1));
    Millis::new(digits << ((code >> DIGITS) - 1))
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
            prop_assert!(code < 1 << BITS);
            // A duration that rounds beyond the largest one counts as the largest.
            let decoded = decode(code).get();
            prop_assert!(decoded >= length && decoded - length <= length / 16);
        }
    }

    #[test]
    fn short_lengths_are_exact() {
        for length in 0..32 {
            assert_eq!(decode(encode(Millis::new(length))).get(), length);
        }
    }
}
