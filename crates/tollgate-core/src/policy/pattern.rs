//! Patterns for values: `*` matches any number of characters.

use alloc::boxed::Box;
use core::fmt;

/// The largest number of `*` in a pattern.
pub const MAX_STARS: usize = 8;

/// A pattern such as `/search*` or `/v1/*/orders`. Each `*` matches any number of characters,
/// including none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    /// The length of the text before the first `*`.
    prefix: usize,
    /// The length of the text after the last `*`.
    suffix: usize,
}

/// The reason why a text is not a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// The text contains no `*`, so it is a plain value.
    NoStar,
    /// The text contains more than [`MAX_STARS`] `*`.
    TooManyStars,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStar => f.write_str("a pattern must contain a `*`"),
            Self::TooManyStars => write!(f, "a pattern may contain at most {MAX_STARS} `*`"),
        }
    }
}

impl core::error::Error for PatternError {}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError`] for a text without `*`, and for a text with more than [`MAX_STARS`] `*`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (Some(prefix), Some(last)) = (text.find('*'), text.rfind('*')) else {
            return Err(PatternError::NoStar);
        };
        if text.bytes().filter(|byte| *byte == b'*').count() > MAX_STARS {
            return Err(PatternError::TooManyStars);
        }
        Ok(Self { text: text.into(), prefix, suffix: text.len() - last - 1 })
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether `value` matches.
    #[must_use]
    pub fn matches(&self, value: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let (prefix, suffix) = (&text[..self.prefix], &text[text.len() - self.suffix..]);
        if value.len() < prefix.len() + suffix.len()
            || !value.starts_with(prefix)
            || !value.ends_with(suffix)
        {
            return false;
        }
        // Each piece of text between two `*` is matched at its first occurrence. The longest
        // possible rest remains for the following pieces, so the search never has to go back.
        let middle = &text[self.prefix..text.len() - self.suffix];
        let mut rest = &value[prefix.len()..value.len() - suffix.len()];
        let mut pieces = middle.split(|byte| *byte == b'*').filter(|piece| !piece.is_empty());
        pieces.all(|piece| match find(rest, piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

/// Returns the index of the first occurrence of `piece` in `bytes`, or `None` if there is none.
/// `piece` must not be empty.
fn find(bytes: &[u8], piece: &[u8]) -> Option<usize> {
    let first = *piece.first()?;
    bytes.windows(piece.len()).position(|window| window[0] == first && window == piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_or_none() {
        let table = [
            ("*", "", true),
            ("*", "anything", true),
            ("foo*", "foo", true),
            ("foo*", "foobar", true),
            ("foo*", "fo", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "example.com", false),
            ("/v1/*/orders", "/v1/a/b/orders", true),
            ("/v1/*/orders", "/v1/orders", false),
            ("/v1/*/orders", "/v1//orders", true),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*bb*bb*c", "abbbc", false),
            ("a*bb*bb*c", "abbbbc", true),
            ("*bc*", "babc", true),
            ("*bc*", "bab", false),
            ("**", "x", true),
            ("é*ü", "éxü", true),
        ];
        for (pattern, value, expected) in table {
            let parsed = Pattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(value.as_bytes()), expected, "{pattern} on {value:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!(Pattern::parse("plain"), Err(PatternError::NoStar));
        assert_eq!(Pattern::parse(&"*".repeat(MAX_STARS + 1)), Err(PatternError::TooManyStars));
        assert!(Pattern::parse(&"*".repeat(MAX_STARS)).is_ok());
    }
}
