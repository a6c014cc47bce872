//! JSON pointers to values in documents.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The maximum length of a pointer in bytes. It also bounds the length of a member name.
pub const MAX_POINTER_BYTES: usize = 256;

/// The largest number of reference tokens (member names and element indexes) in a pointer.
pub const MAX_POINTER_STEPS: usize = 16;

/// A JSON pointer (RFC 6901) to a value inside a document, such as `/usage/total_tokens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer {
    text: Box<str>,
    steps: Box<[Box<str>]>,
}

/// The reason why a text is not a valid pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PointerError {
    /// The text does not begin with `/`.
    NoSlash,
    /// A `~` is not followed by `0` or `1`: `~0` means `~`, and `~1` means `/`.
    Tilde,
    /// The text is longer than [`MAX_POINTER_BYTES`].
    TooLong,
    /// The pointer has more reference tokens than [`MAX_POINTER_STEPS`].
    TooDeep,
}

impl JsonPointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// [`PointerError`] if the text is not a valid pointer.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.len() > MAX_POINTER_BYTES {
            return Err(PointerError::TooLong);
        }
        let steps = text.strip_prefix('/').ok_or(PointerError::NoSlash)?.split('/');
        let steps: Vec<Box<str>> = steps.map(step).collect::<Result<_, _>>()?;
        if steps.len() > MAX_POINTER_STEPS {
            return Err(PointerError::TooDeep);
        }
        Ok(Self { text: text.into(), steps: steps.into() })
    }

    /// Returns the text of the pointer.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the member names and element indexes that lead from the document to the value. The
    /// list has at least one element.
    #[must_use]
    pub const fn steps(&self) -> &[Box<str>] {
        &self.steps
    }
}

/// Decodes one member name or element index, in which `~0` means `~` and `~1` means `/`.
fn step(written: &str) -> Result<Box<str>, PointerError> {
    let mut parts = written.split('~');
    let mut plain = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        let (letter, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return Err(PointerError::Tilde),
        };
        let plain = plain.to_mut();
        plain.push(letter);
        plain.push_str(rest);
    }
    Ok(plain.into())
}

impl fmt::Display for PointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlash => f.write_str("it must begin with a slash, such as /usage/total_tokens"),
            Self::Tilde => f.write_str("a tilde is written ~0, and a slash in a name ~1"),
            Self::TooLong => write!(f, "it is at most {MAX_POINTER_BYTES} bytes long"),
            Self::TooDeep => write!(f, "it has at most {MAX_POINTER_STEPS} steps"),
        }
    }
}

impl core::error::Error for PointerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_its_steps_without_escapes() {
        let steps = |text| JsonPointer::parse(text).map(|pointer| pointer.steps.join("|"));
        assert_eq!(steps("/usage/total_tokens"), Ok("usage|total_tokens".into()));
        assert_eq!(steps("/choices/0/~1a~0b~01"), Ok("choices|0|/a~b~1".into()));
        assert_eq!(steps("/"), Ok("".into()));
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        let error = |text: &str| JsonPointer::parse(text).unwrap_err();
        assert_eq!(error("usage"), PointerError::NoSlash);
        assert_eq!(error(""), PointerError::NoSlash);
        for text in ["/a~", "/~2", "/a~b/c"] {
            assert_eq!(error(text), PointerError::Tilde, "{text}");
        }
        assert_eq!(error(&"/a".repeat(MAX_POINTER_STEPS + 1)), PointerError::TooDeep);
        assert_eq!(error(&"/a".repeat(MAX_POINTER_BYTES)), PointerError::TooLong);
    }
}
