//! The normal form of credentials and cookies. Spellings that services treat as equal have the same
//! normal form and therefore share one counter.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::Ambiguity;
use super::path::percent_decoded;
use crate::attributes::Headers;

/// The header fields with values that begin with the name of an authentication scheme (RFC 9110,
/// section 11).
const SCHEME_FIELDS: [&str; 2] = ["authorization", "proxy-authorization"];

/// The name of the parameter that contains the token in `Token token="x"`, a spelling of Rails.
const TOKEN_PARAMETER: &[u8] = b"token=";

/// Returns a credential in its normal form. `Bearer x`, `token x` and `x` have the same normal form,
/// and in [these fields](SCHEME_FIELDS) also `token="x"`. For other schemes in these fields, the
/// name of the scheme in lower case is part of the credential, and white space after it becomes one
/// space.
///
/// # Errors
/// [`Ambiguity::Malformed`] if services differ on where the credential ends.
pub(super) fn credential<'a>(header: &str, value: &'a [u8]) -> Result<Cow<'a, [u8]>, Ambiguity> {
    // The usual spelling needs no search for the end of a word. The result is the same for every
    // header.
    if let [b'B', b'e', b'a', b'r', b'e', b'r', b' ', bare @ ..] = value
        && is_usual_token(bare)
    {
        return Ok(Cow::Borrowed(bare));
    }
    let value = value.trim_ascii();
    let (scheme, rest) = split_word(value);
    let is_bare = scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"token");
    if !SCHEME_FIELDS.contains(&header) {
        return Ok(Cow::Borrowed(if is_bare && !rest.is_empty() { rest } else { value }));
    }
    if rest.is_empty() || is_bare {
        let bare = token(if rest.is_empty() { value } else { rest });
        return bare.map(Cow::Borrowed).ok_or(Ambiguity::Malformed);
    }
    let is_sound = match scheme.eq_ignore_ascii_case(b"basic") {
        true => is_base64(rest),
        false => is_token(rest) || has_parameters(rest),
    };
    // A first word such as `x,` is not a scheme, but a credential with parameters.
    let is_scheme = is_token(scheme) && !scheme.contains(&b'=');
    if is_sound && is_scheme {
        Ok(Cow::Owned(joined(scheme, rest)))
    } else {
        Err(Ambiguity::Malformed)
    }
}

/// Returns the token in a text that is a token, or the parameter `token` with or without quotes.
/// Some services accept both spellings of a token. Returns `None` for other texts, such as several
/// parameters.
fn token(text: &[u8]) -> Option<&[u8]> {
    let token = match text.split_at_checked(TOKEN_PARAMETER.len()) {
        Some((name, value)) if name.eq_ignore_ascii_case(TOKEN_PARAMETER) => {
            let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            // Some services read a backslash in quotes as the start of an escape.
            if quoted.is_some_and(|quoted| quoted.contains(&b'\\')) {
                return None;
            }
            quoted.unwrap_or(value)
        }
        _ => text,
    };
    is_token(token).then_some(token)
}

/// Returns whether `text` contains only bytes of [tokens](is_of_token).
fn is_token(text: &[u8]) -> bool {
    text.iter().fold(true, |all, byte| all & OF_TOKENS[usize::from(*byte)])
}

/// Returns true only if `text` is its own [normal form](token). Can also return false for such a
/// text, for example if it contains `!` or is empty.
fn is_usual_token(text: &[u8]) -> bool {
    // Each text with the parameter `token` has this byte.
    if text.get(TOKEN_PARAMETER.len() - 1) == Some(&b'=') {
        return false;
    }
    // The last chunk may contain bytes of the chunk before it.
    let Some(last) = text.last_chunk::<16>() else { return !text.is_empty() && is_token(text) };
    // A loop without an early exit at the first mismatch compares all bytes of a chunk at once.
    let mut are_usual = [true; 16];
    for chunk in text.as_chunks::<16>().0.iter().chain([last]) {
        for (is_usual, byte) in are_usual.iter_mut().zip(chunk) {
            *is_usual &= matches!(byte, b'#'..=b'~') & (*byte != b',') & (*byte != b';');
        }
    }
    are_usual == [true; 16]
}

/// For each byte, whether it is [of tokens](is_of_token).
const OF_TOKENS: [bool; 256] = {
    let mut of_tokens = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        of_tokens[byte] = is_of_token(byte as u8);
        byte += 1;
    }
    of_tokens
};

/// Returns whether a token can contain the byte: a visible ASCII character, except for those at
/// which some services divide the value into parameters. RFC 6750 allows none of these in tokens.
const fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';')
}

/// Divides the text into its first word and the rest. The white space between them is dropped.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}

/// Returns whether the text is strict base64. Texts that only lenient decoders accept are rejected,
/// because a client could spell the same credential in many ways: with other bytes between the
/// digits, without padding, or with other values of the bits that the last digit leaves unused.
fn is_base64(text: &[u8]) -> bool {
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let digits = &text[..text.len() - padding];
    let are_digits = digits.iter().all(|byte| base64_digit(*byte).is_some());
    let last = digits.last().and_then(|byte| base64_digit(*byte)).unwrap_or(0);
    let unused_bits = (1 << (2 * padding)) - 1;
    are_digits && text.len().is_multiple_of(4) && last & unused_bits == 0
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Returns whether the text consists of parameters such as `username="a b", realm="c"`. A single
/// token is not a parameter.
fn has_parameters(text: &[u8]) -> bool {
    let (first, _) = split_word(text);
    let value = first.iter().position(|byte| *byte == b'=').map_or(&b""[..], |at| &first[at..]);
    value.iter().any(|byte| *byte != b'=')
}

/// Joins a scheme and the words of `rest` with single spaces, and converts the scheme to lower
/// case.
fn joined(scheme: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(scheme.len() + 1 + rest.len());
    joined.extend(scheme.iter().map(u8::to_ascii_lowercase));
    for word in rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        joined.push(b' ');
        joined.extend_from_slice(word);
    }
    joined
}

/// Returns the value of the cookie `name`, percent-decoded and without surrounding white space and
/// quotes. Returns `None` if the request has no such cookie.
///
/// # Errors
/// [`Ambiguity::Repeated`] if several cookies have this name, in one `cookie` field or in many;
/// [`Ambiguity::Malformed`] if the value contains characters that RFC 6265 does not allow.
pub(super) fn cookie<'a>(
    headers: &'a dyn Headers,
    name: &str,
) -> Result<Option<Cow<'a, [u8]>>, Ambiguity> {
    let mut values = cookie_values(headers, name);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Ambiguity::Repeated);
    }
    cookie_value(value).map(Some)
}

/// Returns the values of all cookies with the name `name`, without surrounding white space and
/// quotes.
pub(super) fn cookie_values<'a>(
    headers: &'a dyn Headers,
    name: &str,
) -> impl Iterator<Item = &'a [u8]> {
    let fields = (0..).map_while(|index| headers.value("cookie", index));
    let pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        if pair[..equals].trim_ascii() != name.as_bytes() {
            return None;
        }
        let value = pair[equals + 1..].trim_ascii();
        let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        Some(inside.unwrap_or(value))
    })
}

fn cookie_value(value: &[u8]) -> Result<Cow<'_, [u8]>, Ambiguity> {
    // These are the `cookie-octet` characters of RFC 6265. Some services read a backslash as the
    // start of an escape, and others end a value at white space or a comma.
    let is_octet = |byte: &u8| byte.is_ascii_graphic() && !b"\",;\\".contains(byte);
    if value.iter().all(is_octet) { Ok(percent_decoded(value)) } else { Err(Ambiguity::Malformed) }
}

/// Joins all `cookie` fields, because HTTP/2 allows a client to split the field.
pub(super) fn joined_cookies(headers: &dyn Headers) -> Vec<u8> {
    let fields: Vec<&[u8]> = (0..).map_while(|index| headers.value("cookie", index)).collect();
    fields.join(&b"; "[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn normal(value: &str) -> Result<String, Ambiguity> {
        let credential = credential("authorization", value.as_bytes())?;
        Ok(String::from_utf8_lossy(&credential).into_owned())
    }

    #[test]
    fn one_credential_however_written() {
        for value in [
            "x",
            " x\t",
            "Bearer x",
            "bearer x",
            "BEARER   x",
            "Bearer\tx",
            "Bearer\t\t \tx",
            "Bearer \t x ",
            "token x",
            "Token\tx",
        ] {
            assert_eq!(normal(value).as_deref(), Ok("x"), "{value:?}");
        }
        for value in ["Basic YTpi", "basic YTpi", "bASIC\tYTpi", "BASIC \t  YTpi"] {
            assert_eq!(normal(value).as_deref(), Ok("basic YTpi"), "{value:?}");
        }
        for value in ["ApiKey k", "apikey\t\tk", "APIKEY k"] {
            assert_eq!(normal(value).as_deref(), Ok("apikey k"), "{value:?}");
        }
        let digest = "Digest  username=\"a b\",\trealm=\"c\"";
        assert_eq!(normal(digest).as_deref(), Ok("digest username=\"a b\", realm=\"c\""));
    }

    #[test]
    fn what_ends_in_several_places_is_refused() {
        for value in [
            "Bearer a b",
            "Bearer\ta b",
            "Bearer a, Bearer b",
            "token a b",
            "ApiKey k junk",
            "ApiKey k== junk",
            "Basic YTpi junk",
            "Basic Y!Tpi",
            "Basic YTpi===",
            "Basic YTp",
            "Basic ====",
            "ApiKey k,1",
            "k, 1",
            "k=1 2",
            "Bearer a\u{a0}",
            "a\u{85}",
        ] {
            assert_eq!(normal(value), Err(Ambiguity::Malformed), "{value:?}");
        }
    }

    #[test]
    fn a_token_with_parameters_behind_it_has_no_further_counters() {
        // Rails divides all of these at `,`, `;` and tabs, and authenticates them as `abc`.
        for rest in [
            "abc,1",
            "abc,2",
            "abc;3",
            "\"abc\"",
            "\"abc",
            "abc\"",
            "token=\"abc\",n=4",
            "token=\"abc\";n=4",
            "token=\"abc\", n=4",
            "token=abc,n=4",
            "token=\"abc",
            "token=\"a\\bc\"",
            "token=\"",
            "token = \"abc\"",
        ] {
            for scheme in ["Bearer ", "bearer ", "Token ", "token\t", ""] {
                let value = alloc::format!("{scheme}{rest}");
                assert_eq!(normal(&value), Err(Ambiguity::Malformed), "{value:?}");
            }
        }
    }

    #[test]
    fn a_token_as_a_parameter_has_no_counter_of_its_own() {
        for rest in ["abc", "token=abc", "token=\"abc\"", "TOKEN=\"abc\""] {
            for scheme in ["Bearer ", "bearer\t", "Token ", "token  ", ""] {
                let value = alloc::format!("{scheme}{rest}");
                assert_eq!(normal(&value).as_deref(), Ok("abc"), "{value:?}");
            }
        }
        // These are tokens that contain the name, or parameters with other names.
        for token in ["tokens=abc", "token", "token=token=abc", "a-token=abc", "abcde=="] {
            let expected = token.strip_prefix("token=").unwrap_or(token);
            assert_eq!(normal(&alloc::format!("Bearer {token}")).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn the_usual_spelling_is_read_as_every_other_one() {
        for length in [1, 5, 6, 7, 15, 16, 17, 32, 40] {
            for (at, byte) in (0..length).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
                let mut token = alloc::vec![b'x'; length];
                token[at] = byte;
                for header in ["authorization", "x-api-key"] {
                    let of = |scheme: &[u8]| {
                        let value = [scheme, &token].concat();
                        credential(header, &value).map(Cow::into_owned)
                    };
                    assert_eq!(of(b"Bearer "), of(b"Bearer  "), "{at} {byte}");
                }
            }
        }
        for (length, byte) in [0, 1, 16, 20]
            .into_iter()
            .flat_map(|length| (0..=u8::MAX).map(move |byte| (length, byte)))
        {
            let token = alloc::vec![byte; length];
            let of = |scheme: &[u8]| {
                credential("authorization", &[scheme, &token].concat()).map(Cow::into_owned)
            };
            assert_eq!(of(b"Bearer "), of(b"Bearer  "), "{length} times {byte}");
        }
    }

    #[test]
    fn one_login_has_one_spelling_in_base64() {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let spellings = |digits: &str| {
            let mut sound = Vec::new();
            for last in DIGITS {
                for padding in ["", "=", "==", "==="] {
                    let value = alloc::format!("Basic {digits}{}{padding}", char::from(*last));
                    sound.extend(normal(&value).ok());
                }
            }
            sound
        };
        // A last digit with six used bits has 64 values, one with four has 16, one with two has 4.
        assert_eq!((spellings("YTp").len(), spellings("YT").len()), (64, 16));
        assert_eq!(spellings("Y"), ["basic YA==", "basic YQ==", "basic Yg==", "basic Yw=="]);
        assert!(spellings("").is_empty());
    }

    #[test]
    fn values_of_other_fields_keep_their_words() {
        let of = |value: &'static str| credential("x-account", value.as_bytes()).unwrap();
        assert_eq!(&*of(" John R. Tolkien "), b"John R. Tolkien");
        assert_eq!(&*of("Bearer \t k"), b"k");
        assert_eq!(&*of("Bearer"), b"Bearer");
    }

    #[test]
    fn one_cookie_however_written() {
        for field in [
            "s=REAL",
            "a=1; s=REAL",
            "s=REAL; a=1",
            "s= REAL ",
            "s =\tREAL",
            "s=\"REAL\"",
            "s=%52EAL",
            "S=other;s=REAL",
            ";;s=REAL;",
        ] {
            let headers: &[(&str, &[u8])] = &[("cookie", field.as_bytes())];
            let headers = Lines(headers);
            assert_eq!(cookie(&headers, "s").unwrap().as_deref(), Some(&b"REAL"[..]), "{field}");
        }
    }

    #[test]
    fn a_cookie_that_services_read_in_different_ways_is_refused() {
        for (field, expected) in [
            ("s=decoy; s=REAL", Ambiguity::Repeated),
            ("s=REAL; s=REAL", Ambiguity::Repeated),
            ("s=; s=REAL", Ambiguity::Repeated),
            ("s=\"\\122EAL\"", Ambiguity::Malformed),
            ("s=REAL a=1", Ambiguity::Malformed),
            ("s=REAL,a", Ambiguity::Malformed),
            ("s=\"REAL", Ambiguity::Malformed),
            ("s=RE\"AL", Ambiguity::Malformed),
        ] {
            let headers: &[(&str, &[u8])] = &[("cookie", field.as_bytes())];
            assert_eq!(cookie(&Lines(headers), "s"), Err(expected), "{field}");
        }
        let crumbs: &[(&str, &[u8])] = &[("cookie", b"s=a"), ("cookie", b"s=b")];
        assert_eq!(cookie(&Lines(crumbs), "s"), Err(Ambiguity::Repeated));
        assert_eq!(cookie(&Lines(crumbs), "t"), Ok(None));
    }

    struct Lines<'a>(&'a [(&'a str, &'a [u8])]);

    impl Headers for Lines<'_> {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            self.0.value(name, index)
        }
    }
}
