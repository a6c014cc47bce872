//! RFC 3339 times, `2015-05-17T10:05:03.250Z`.

use super::calendar::{days, four, millis, offset, second_of_day, two};

/// Parses a time to milliseconds since the epoch. Returns `None` if `text` is not such a time.
/// Fractions of a millisecond are cut off.
///
/// Two deviations that occur in logs are accepted: a space instead of the `T`, and a zone without
/// its colon or no zone (UTC).
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let (clock, rest) = text.split_at_checked(19)?;
    if clock[4] != b'-' || clock[7] != b'-' || !matches!(clock[10], b'T' | b't' | b' ') {
        return None;
    }
    if clock[13] != b':' || clock[16] != b':' {
        return None;
    }
    let days = days(four(&clock[..4])?, two(&clock[5..7])?, two(&clock[8..10])?)?;
    let second = second_of_day(two(&clock[11..13])?, two(&clock[14..16])?, two(&clock[17..19])?)?;
    let (fraction, rest) = fraction(rest)?;
    millis(days, second, zone(rest)?).map(|millis| millis + fraction)
}

/// Parses the fraction of a second at the start of the text. Returns its milliseconds, which are 0
/// without a fraction, and the rest of the text. Returns `None` if the fraction has no digits.
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".").or_else(|| text.strip_prefix(b",")) else {
        return Some((0, text));
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let places = [100, 10, 1];
    let millis = digits[..length]
        .iter()
        .zip(places)
        .map(|(digit, place)| u64::from(digit - b'0') * place)
        .sum();
    Some((millis, &digits[length..]))
}

/// Parses the time zone, and returns its offset in seconds east of Greenwich. An empty text means
/// UTC. Returns `None` if `text` is not a time zone.
fn zone(text: &[u8]) -> Option<i64> {
    match *text {
        [] | [b'Z' | b'z'] => Some(0),
        [sign, a, b, b':', c, d] | [sign, a, b, c, d] => offset(sign, two(&[a, b])?, two(&[c, d])?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_and_without_fraction_and_zone() {
        for text in [
            "2015-05-17T10:05:03.250Z",
            "2015-05-17t10:05:03,25z",
            "2015-05-17 10:05:03.2509999999",
            "2015-05-17T12:05:03.250+02:00",
            "2015-05-17T04:35:03.250-0530",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(1_431_857_103_250), "{text}");
        }
        assert_eq!(parse(b"2015-05-17T10:05:03Z"), Some(1_431_857_103_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2015-05-17",
            "2015-05-17T10:05:03.Z",
            "2015-05-17T10:05:03 UTC",
            "2015-13-17T10:05:03Z",
            "2015-05-17T10:05:03+2:00",
            "2015-05-17T10:05:0\u{e9}",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
