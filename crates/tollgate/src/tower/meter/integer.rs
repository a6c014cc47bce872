//! The normal form of whole numbers in JSON documents.

/// The largest power of ten by which the last significant digit of a number is multiplied.
const MAX_POWER: u64 = 64;

/// Returns the decimal digits of a whole number, such as `42` for `42`, `42.0` and `4.2e1`. `number`
/// is a number as it is written in a JSON document (RFC 8259).
///
/// Returns `None` if the number has a fraction, because services round fractions in different ways
/// or cut them off. Also returns `None` if the number ends in more than [`MAX_POWER`] zeros, or is
/// not a number of JSON.
pub(super) fn integer(number: &str) -> Option<String> {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_extra_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || has_extra_zero || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let all = [whole, fraction].concat();
    let digits = all.trim_end_matches('0');
    let zeros = all.len() - digits.len();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    // The number is `digits` multiplied by ten to this power.
    let power = i64::from(exponent) + zeros as i64 - fraction.len() as i64;
    let zeros = u64::try_from(power).ok().filter(|power| *power <= MAX_POWER)?;
    Some([sign, digits, &"0".repeat(zeros as usize)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_has_one_form_however_it_is_written() {
        for number in ["42", "42.0", "42.000", "4.2e1", "4.2E+01", "420e-1", "42e0", "0.042e3"] {
            assert_eq!(integer(number).as_deref(), Some("42"), "{number}");
        }
        for zero in ["0", "-0", "0.0", "-0.00", "0e9", "0E-9", "0e2147483647"] {
            assert_eq!(integer(zero).as_deref(), Some("0"), "{zero}");
        }
        for (number, expected) in [
            ("-7", "-7"),
            ("-70e-1", "-7"),
            ("1200", "1200"),
            ("12e2", "1200"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551616.0", "18446744073709551616"),
        ] {
            assert_eq!(integer(number).as_deref(), Some(expected), "{number}");
        }
    }

    #[test]
    fn numbers_that_services_read_in_different_ways_have_no_form() {
        for number in [
            "42.1",
            "42.00000000000000000001",
            "42e-1",
            "1e-400",
            "1e65",
            "1e2147483647",
            "1e2147483648",
            "1e-2147483648",
            "1e99999999999999999999",
            "042",
            "-",
            "--1",
            "+1",
            "1.",
            ".5",
            "1.e2",
            "1e",
            "1e+",
            "1e+-2",
            "1e1.0",
            "1x",
            "0x2a",
            "-Infinity",
            "1_000",
            "4 2",
            "\u{664}",
        ] {
            assert_eq!(integer(number), None, "{number}");
        }
        assert_eq!(integer("1e64"), Some(format!("1{}", "0".repeat(64))));
    }
}
