//! Query strings, parsed as strictly as bodies: unknown parameters are refused.

use super::problem::{Kind, Problem};

/// The most parameters of one query.
const MAX_PARAMETERS: usize = 100;

/// Returns the decoded names and values in their order. A parameter without `=` has no value.
pub(super) fn parameters(query: &str) -> Result<Vec<(String, Option<String>)>, Problem> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let parameters = parts.take(MAX_PARAMETERS + 1).map(|part| match part.split_once('=') {
        Some((name, value)) => Ok((decoded(name)?, Some(decoded(value)?))),
        None => Ok((decoded(part)?, None)),
    });
    let parameters = parameters.collect::<Result<Vec<_>, Problem>>()?;
    if parameters.len() > MAX_PARAMETERS {
        return Err(invalid(format!("there are more than {MAX_PARAMETERS} parameters")));
    }
    Ok(parameters)
}

pub(super) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::InvalidQuery, detail.into())
}

/// Decodes `%20` in a segment of a path. In a path, `+` means itself and not a space.
pub(super) fn decoded_path(text: &str) -> Result<String, Problem> {
    decoded(&text.replace('+', "%2B"))
}

/// Decodes `%20` and `+` in `text`.
fn decoded(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let digits = rest.next().and_then(digit).zip(rest.next().and_then(digit));
                let value = digits.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                value
                    .ok_or_else(|| invalid("a \"%\" must be followed by two hexadecimal digits"))?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| invalid("a parameter is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_nothing_is_guessed() {
        let read = parameters("limit=core&&subject%5Btoken%5D=a+b%2b&subject[none]&a=b=c").unwrap();
        let expected = [
            ("limit", Some("core")),
            ("subject[token]", Some("a b+")),
            ("subject[none]", None),
            ("a", Some("b=c")),
        ];
        assert_eq!(read.len(), expected.len());
        for ((name, value), (expected_name, expected_value)) in read.iter().zip(expected) {
            assert_eq!((&**name, value.as_deref()), (expected_name, expected_value));
        }
        for wrong in ["a=%", "a=%1", "a=%zz", "a=%+1", "%ff=1", &"a&".repeat(101)] {
            assert!(parameters(wrong).is_err(), "{wrong}");
        }
    }
}
