//! Path patterns with parameters, over a path in one normal form.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The most segments of a path that are looked at; a longer path matches only through `**`.
pub const MAX_SEGMENTS: usize = 256;

/// A pattern such as `/users/{id}/posts` or `/search/**`.
///
/// A segment is literal text, `*` for any one segment, `{name}` for any one segment that is
/// remembered, or, in the last place, `**` for all that is left, also nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
    text: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<[u8]>),
    One,
    Parameter(Box<str>),
    Rest,
}

/// Why a pattern cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPatternError {
    /// It does not begin with `/`.
    NotAbsolute,
    /// `**` is not the last segment.
    RestNotLast,
    /// A parameter has no name, or a brace stands inside a segment.
    Parameter,
    /// Two parameters have one name.
    DuplicateParameter,
    /// A `*` stands beside other text.
    Wildcard,
    /// No path in normal form has such a segment.
    NeverMatches,
}

impl fmt::Display for PathPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAbsolute => "a path pattern begins with `/`",
            Self::RestNotLast => "`**` can only be the last segment",
            Self::Parameter => "a parameter is a whole segment such as `{id}`",
            Self::DuplicateParameter => "two parameters have the same name",
            Self::Wildcard => "`*` stands for a whole segment, `**` for all that follow",
            Self::NeverMatches => "no path has a segment `.` or `..`, nor a query or a fragment",
        })
    }
}

impl core::error::Error for PathPatternError {}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`PathPatternError`], which says what a pattern must look like.
    pub fn parse(text: &str) -> Result<Self, PathPatternError> {
        let Some(relative) = text.strip_prefix('/') else {
            return Err(PathPatternError::NotAbsolute);
        };
        let mut segments: Vec<Segment> = Vec::new();
        for part in relative.split('/').filter(|part| !part.is_empty()) {
            if segments.last() == Some(&Segment::Rest) {
                return Err(PathPatternError::RestNotLast);
            }
            let segment = match part {
                "**" => Segment::Rest,
                "*" => Segment::One,
                _ => match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                    Some(name) if name.is_empty() || name.contains(['{', '}']) => {
                        return Err(PathPatternError::Parameter);
                    }
                    Some(name) => Segment::Parameter(name.into()),
                    None if part.contains(['{', '}']) => return Err(PathPatternError::Parameter),
                    None if part.contains('*') => return Err(PathPatternError::Wildcard),
                    None => Segment::Literal(literal(part)?),
                },
            };
            if matches!(segment, Segment::Parameter(_)) && segments.contains(&segment) {
                return Err(PathPatternError::DuplicateParameter);
            }
            segments.push(segment);
        }
        Ok(Self { segments, text: text.into() })
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern remembers a segment as `name`.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        self.segments.iter().any(|s| matches!(s, Segment::Parameter(own) if **own == *name))
    }

    /// Whether `path` fits the pattern.
    #[must_use]
    pub fn matches(&self, path: &NormalPath<'_>) -> bool {
        let mut parts = path.segments.iter();
        for segment in &self.segments {
            let fits = match (segment, segment == &Segment::Rest) {
                (_, true) => return true,
                (Segment::Literal(text), _) => parts.next().is_some_and(|part| **part == **text),
                _ => parts.next().is_some(),
            };
            if !fits {
                return false;
            }
        }
        parts.next().is_none() && !path.truncated
    }

    /// What stands in `path`, which fits the pattern, in the place of parameter `name`.
    #[must_use]
    pub fn parameter<'a>(&self, name: &str, path: &'a NormalPath<'_>) -> Option<&'a [u8]> {
        let place = self
            .segments
            .iter()
            .position(|segment| matches!(segment, Segment::Parameter(own) if **own == *name))?;
        path.segments.get(place).map(|segment| &**segment)
    }
}

/// A path in its one normal form: segments percent-decoded once, empty ones and `.` dropped, `..`
/// resolved. Ways to write one path that a service treats alike do not make two of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NormalPath<'p> {
    segments: Vec<Cow<'p, [u8]>>,
    truncated: bool,
}

impl<'p> NormalPath<'p> {
    /// Brings `path`, without its query, into normal form.
    #[must_use]
    pub fn new(path: &'p str) -> Self {
        let mut normal = Self::default();
        for part in path.split('/') {
            let segment = decode(part.as_bytes());
            match &*segment {
                b"" | b"." => {}
                b".." => {
                    normal.segments.pop();
                }
                _ if normal.segments.len() == MAX_SEGMENTS => {
                    normal.truncated = true;
                    break;
                }
                _ => normal.segments.push(segment),
            }
        }
        normal
    }
}

impl fmt::Display for NormalPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments
            .iter()
            .try_for_each(|segment| write!(f, "/{}", String::from_utf8_lossy(segment)))
    }
}

/// A literal segment as a path in normal form has it: written with `%xx` or without, it is one.
fn literal(part: &str) -> Result<Box<[u8]>, PathPatternError> {
    let decoded = decode(part.as_bytes());
    if part.contains(['?', '#']) || matches!(&*decoded, b"." | b"..") {
        return Err(PathPatternError::NeverMatches);
    }
    Ok(decoded.into())
}

/// Decodes `%xx`; a `%` that begins no such triple stays. Most parts have none, and are borrowed.
fn decode(part: &[u8]) -> Cow<'_, [u8]> {
    if !part.contains(&b'%') {
        return Cow::Borrowed(part);
    }
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if let (b'%', Some(high), Some(low)) = (byte, hex(after.first()), hex(after.get(1))) {
            decoded.push((high * 16 + low) as u8);
            rest = &after[2..];
        } else {
            decoded.push(*byte);
        }
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn fits(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(&NormalPath::new(path))
    }

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, expected) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/a", "/a", true),
            ("/a", "/a/", true),
            ("/a", "/b", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a", false),
            ("/a/**", "/a", true),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/ab", false),
            ("/u/{id}/p", "/u/7/p", true),
            ("/u/{id}/p", "/u/7/8/p", false),
            ("/**", "/anything/at/all", true),
            ("/caf%C3%A9", "/caf%c3%a9", true),
            ("/café", "/caf%C3%A9", true),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn ways_to_write_one_path_are_one_path() {
        for path in
            ["/a/b", "//a//b/", "/./a/b", "/x/../a/b", "/%61/b", "/a/%2e/b", "/x/%2E%2e/a/b"]
        {
            assert_eq!(NormalPath::new(path).to_string(), "/a/b", "{path}");
        }
        // Decoded once: what was encoded twice, or holds an encoded slash, stays another path.
        assert!(!fits("/a/b", "/a%2fb"));
        assert!(!fits("/a/b", "/%2561/b"));
    }

    #[test]
    fn parameters_are_remembered() {
        let pattern = PathPattern::parse("/u/{id}/p/{post}").unwrap();
        let path = NormalPath::new("/u/a%20b/p/9");
        assert!(pattern.matches(&path));
        assert_eq!(pattern.parameter("id", &path), Some(&b"a b"[..]));
        assert_eq!(pattern.parameter("post", &path), Some(&b"9"[..]));
        assert_eq!(pattern.parameter("other", &path), None);
    }

    #[test]
    fn patterns_that_cannot_be_meant_are_refused() {
        for (text, error) in [
            ("a", PathPatternError::NotAbsolute),
            ("/a/**/b", PathPatternError::RestNotLast),
            ("/{}", PathPatternError::Parameter),
            ("/a{b}", PathPatternError::Parameter),
            ("/{a}/{a}", PathPatternError::DuplicateParameter),
            ("/a*", PathPatternError::Wildcard),
            ("/a/***", PathPatternError::Wildcard),
            ("/a/../b", PathPatternError::NeverMatches),
            ("/a?b=c", PathPatternError::NeverMatches),
        ] {
            assert_eq!(PathPattern::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn endless_paths_are_cut_and_match_only_what_is_open() {
        let long = "/a".repeat(MAX_SEGMENTS + 1);
        assert!(fits("/**", &long));
        assert!(!fits(&"/a".repeat(MAX_SEGMENTS), &long));
    }
}
