//! Converts decimal numbers to scaled integers without floating point.

/// Returns `floor(number × 10^power)` of a JSON number, or `None` if `number` is negative or not a
/// number, or if the result exceeds 64 bits.
pub(crate) fn scaled(number: &[u8], power: i32) -> Option<u64> {
    let (mantissa, exponent) = split_exponent(number)?;
    let point = memchr::memchr(b'.', mantissa);
    let whole = point.unwrap_or(mantissa.len());
    let digits = || {
        mantissa.iter().enumerate().filter(|&(at, _)| Some(at) != point).map(|(_, digit)| *digit)
    };
    let count = mantissa.len() - usize::from(point.is_some());
    if whole == 0 || count == 0 || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // The result is the first `kept` digits, padded with zeros if there are fewer.
    let kept = i64::try_from(whole).ok()? + i64::from(exponent) + i64::from(power);
    let Ok(kept) = usize::try_from(kept) else { return Some(0) };
    let mut value = 0u64;
    for digit in digits().take(kept) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if value == 0 {
        return Some(0);
    }
    let zeros = u32::try_from(kept.saturating_sub(count)).ok()?;
    value.checked_mul(10u64.checked_pow(zeros)?)
}

/// Splits a number into its mantissa and its exponent of ten. Returns `None` if the exponent is
/// invalid.
fn split_exponent(number: &[u8]) -> Option<(&[u8], i32)> {
    let Some(at) = memchr::memchr2(b'e', b'E', number) else {
        return Some((number, 0));
    };
    let exponent = std::str::from_utf8(&number[at + 1..]).ok()?.parse::<i32>().ok()?;
    // With a larger exponent, every 64-bit result is 0 or an overflow. Within this bound, sums of
    // exponents cannot overflow.
    Some((&number[..at], exponent.clamp(-1_000_000, 1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_exactly() {
        assert_eq!(scaled(b"0", 3), Some(0));
        assert_eq!(scaled(b"1.5", 3), Some(1500));
        assert_eq!(scaled(b"0.0019", 3), Some(1));
        assert_eq!(scaled(b"1234567", -6), Some(1));
        assert_eq!(scaled(b"0.29", 2), Some(29), "a double would give 28");
        assert_eq!(scaled(b"15e-1", 1), Some(15));
        assert_eq!(scaled(b"1.5E+2", 0), Some(150));
        assert_eq!(scaled(b"18446744073709551615", 0), Some(u64::MAX));
        assert_eq!(scaled(b"0e999999999", 9), Some(0));
        assert_eq!(scaled(b"1e-999999999", 9), Some(0));
    }

    #[test]
    fn what_is_no_number_or_too_large_is_refused() {
        for number in
            ["", "-1", ".5", "1.2.3", "1e", "e5", "0x10", "18446744073709551616", "1e99", "1 "]
        {
            assert_eq!(scaled(number.as_bytes(), 0), None, "{number}");
        }
    }
}
