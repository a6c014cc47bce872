//! Path patterns with parameters, such as `/users/{id}`, which are compared with normalized paths.
//!
//! This module uses no library. The core has no dependencies, and a path is decoded once for all
//! rules. The crate `matchit` finds one route of many, but a policy needs all rules that match.

mod normal;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use normal::decode;
pub use normal::{AmbiguousPaths, NormalPath, PathCase, PathOptions, PathParameters};

pub(super) use normal::{decode as percent_decoded, fold};

/// A pattern such as `/users/{id}/posts` or `/search/**`.
///
/// A segment is literal text, `*` for any one segment, or `{name}` for any one segment that is
/// captured. The last segment can be `**` for the rest of the path, which can be empty.
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

/// The reason why a pattern is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPatternError {
    /// The pattern does not begin with `/`.
    NotAbsolute,
    /// `**` is not the last segment.
    RestNotLast,
    /// A parameter has no name, or a segment contains other text next to a brace.
    Parameter,
    /// Two parameters have the same name.
    DuplicateParameter,
    /// A segment contains other text next to `*`.
    Wildcard,
    /// A segment of the pattern does not occur in any normalized path.
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
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PathPatternError`] if the pattern is invalid.
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
                    Some(name) if !is_name(name) => {
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

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern captures a segment as `name`.
    #[must_use]
    pub fn has_parameter(&self, name: &str) -> bool {
        self.segments.iter().any(|s| matches!(s, Segment::Parameter(own) if **own == *name))
    }

    /// Returns the smallest number of segments of a matching path.
    #[must_use]
    pub fn min_segments(&self) -> usize {
        self.segments.iter().filter(|segment| **segment != Segment::Rest).count()
    }

    /// Returns the byte after the first slash of every matching path, or `None` if matching paths
    /// differ in this byte.
    pub(super) fn first_byte(&self) -> Option<u8> {
        match self.segments.first()? {
            Segment::Literal(text) => text.first().copied(),
            Segment::One | Segment::Parameter(_) | Segment::Rest => None,
        }
    }

    /// Returns whether `path` matches.
    #[must_use]
    pub fn matches(&self, path: &NormalPath<'_>) -> bool {
        let mut parts = path.segments();
        // Most paths differ in their first segment.
        if let Some(Segment::Literal(text)) = self.segments.first()
            && !parts.begins_with(text)
        {
            return false;
        }
        for segment in &self.segments {
            let fits = match segment {
                Segment::Rest => return true,
                Segment::Literal(text) => parts.next().is_some_and(|part| *part == **text),
                Segment::One | Segment::Parameter(_) => parts.next().is_some(),
            };
            if !fits {
                return false;
            }
        }
        parts.next().is_none()
    }

    /// Returns the segment of `path` that the pattern captures as `name`, or `None` if the pattern
    /// has no parameter with this name. `path` must match the pattern.
    #[must_use]
    pub fn parameter<'a>(&self, name: &str, path: &'a NormalPath<'_>) -> Option<&'a [u8]> {
        let index = self
            .segments
            .iter()
            .position(|segment| matches!(segment, Segment::Parameter(own) if **own == *name))?;
        path.segments().nth(index)
    }

    /// Returns whether a literal segment of the pattern contains a `;` and therefore path
    /// parameters, such as `a;b`. If the policy [drops](PathParameters::Drop) path parameters from
    /// paths, a pattern with path parameters never matches.
    #[must_use]
    pub fn has_path_parameters(&self) -> bool {
        let is_literal = |part: &&str| !part.starts_with('{');
        self.text.split('/').filter(is_literal).any(|part| part.contains(';'))
    }

    /// Returns a pattern that ignores the difference between upper and lower case, for paths that
    /// are normalized with [`PathCase::Ignore`].
    #[must_use]
    pub fn ignoring_case(mut self) -> Self {
        for segment in &mut self.segments {
            if let Segment::Literal(text) = segment {
                *text = fold(text).into();
            }
        }
        self
    }
}

/// Returns whether `text` is a valid name of a parameter. Other texts between braces, such as
/// `{id:[0-9]+}`, have a meaning in other pattern languages and are rejected.
fn is_name(text: &str) -> bool {
    let fits = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(fits)
}

fn literal(part: &str) -> Result<Box<[u8]>, PathPatternError> {
    let decoded = decode(part.as_bytes());
    if part.contains(['?', '#']) || matches!(&*decoded, b"." | b"..") {
        return Err(PathPatternError::NeverMatches);
    }
    Ok(decoded.into())
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
        // A path is decoded only once. Encoding a path twice, or encoding a slash, therefore gives
        // another path.
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
}
