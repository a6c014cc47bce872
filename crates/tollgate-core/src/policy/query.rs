//! Parameters of a query, in the encoding of HTML forms.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::Ambiguity;

/// The longest value, in bytes, that is decoded without an allocation.
const SCRATCH: usize = 512;

/// Returns the values of the parameter `name` as the client sent them. The names in the query are
/// decoded before they are compared with `name`.
pub(super) fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    query.split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_it = FormDecoded(key.as_bytes()).eq(name.bytes());
        is_it.then_some(value.as_bytes())
    })
}

/// Returns the decoded value of the parameter `name`, without surrounding white space. Returns
/// `Ok(None)` if the query has no such parameter.
///
/// # Errors
/// [`Ambiguity::Repeated`] if several parameters have this name; [`Ambiguity::Malformed`] if a `%`
/// in the value is not followed by two hexadecimal digits, or encodes a NUL.
pub(super) fn value<'a>(query: &'a str, name: &'a str) -> Result<Option<Cow<'a, [u8]>>, Ambiguity> {
    let mut values = values(query, name);
    let Some(sent) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Ambiguity::Repeated);
    }
    if !is_encoded(sent) {
        return Ok(Some(Cow::Borrowed(sent.trim_ascii())));
    }
    let is_escape =
        |at: usize| matches!(sent[at + 1..], [high, low, ..] if hex(high, low).is_some());
    let mut escapes = (0..sent.len()).filter(|at| sent[*at] == b'%');
    let decoded: Vec<u8> = FormDecoded(sent).collect();
    if !escapes.all(is_escape) || decoded.contains(&0) {
        return Err(Ambiguity::Malformed);
    }
    Ok(Some(Cow::Owned(decoded.trim_ascii().into())))
}

/// Calls `then` with the decoded value. Values of up to [`SCRATCH`] bytes are decoded without an
/// allocation.
pub(super) fn with_decoded<T>(sent: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
    if !is_encoded(sent) {
        return then(sent);
    }
    if sent.len() > SCRATCH {
        return then(&FormDecoded(sent).collect::<Vec<u8>>());
    }
    let mut scratch = [0; SCRATCH];
    let mut length = 0;
    for (target, byte) in scratch.iter_mut().zip(FormDecoded(sent)) {
        *target = byte;
        length += 1;
    }
    then(&scratch[..length])
}

fn is_encoded(sent: &[u8]) -> bool {
    sent.iter().any(|byte| matches!(byte, b'%' | b'+'))
}

/// Decodes the bytes of a name or a value one by one. An invalid escape stays unchanged.
struct FormDecoded<'a>(&'a [u8]);

impl Iterator for FormDecoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        match (first, rest) {
            (b'+', _) => Some(b' '),
            (b'%', [high, low, after @ ..]) => match hex(*high, *low) {
                Some(byte) => {
                    self.0 = after;
                    Some(byte)
                }
                None => Some(b'%'),
            },
            _ => Some(*first),
        }
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn values_are_decoded_once() {
        for (query, expected) in [
            ("key=a", Some("a")),
            ("a=b&key=a%20b+c&c", Some("a b c")),
            ("k%65y=%2525", Some("%25")),
            ("key=a=b", Some("a=b")),
            ("key", Some("")),
            ("key=%20a+", Some("a")),
            ("Key=a&keys=b&ke=y", None),
            ("", None),
        ] {
            let value = value(query, "key").unwrap();
            let value = value.map(|value| String::from_utf8_lossy(&value).into_owned());
            assert_eq!(value.as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn a_parameter_that_services_read_in_different_ways_is_refused() {
        for (query, expected) in [
            ("key=a&key=b", Ambiguity::Repeated),
            ("key=a&k%65y=a", Ambiguity::Repeated),
            ("key&key=a", Ambiguity::Repeated),
            ("key=%", Ambiguity::Malformed),
            ("key=a%2", Ambiguity::Malformed),
            ("key=%zz", Ambiguity::Malformed),
            ("key=a%00b", Ambiguity::Malformed),
        ] {
            assert_eq!(value(query, "key"), Err(expected), "{query}");
        }
    }

    #[test]
    fn short_and_long_values_are_decoded_alike() {
        for length in [1, SCRATCH - 1, SCRATCH, SCRATCH + 1, 4 * SCRATCH] {
            let mut sent = alloc::vec![b'a'; length];
            sent[length / 2] = b'+';
            let decoded = with_decoded(&sent, <[u8]>::to_vec);
            sent[length / 2] = b' ';
            assert_eq!(decoded, sent);
        }
    }
}
