//! Normalization of request paths, and detection of paths that services interpret differently.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, slice, str};

use crate::policy::Ambiguity;

/// The options for comparing paths with patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// Whether paths are case-sensitive.
    pub case: PathCase,
    /// What happens to parameters in segments.
    pub parameters: PathParameters,
    /// What happens to a request with an ambiguous path.
    pub ambiguous: AmbiguousPaths,
}

/// Whether paths are case-sensitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathCase {
    /// `/Login` and `/login` are different.
    #[default]
    Exact,
    /// `/Login` and `/login` are equal, for services with case-insensitive paths.
    Ignore,
}

/// What happens to parameters in a segment, such as `;v=1` in `/login;v=1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathParameters {
    /// Parameters are part of the segment.
    #[default]
    Keep,
    /// Parameters are removed, for services that ignore them.
    Drop,
}

/// What happens to a request with a path that services interpret differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmbiguousPaths {
    /// Requests with an ambiguous path are refused.
    #[default]
    Refuse,
    /// Requests with an ambiguous path are matched by the decoded segments of the path.
    Pass,
}

/// A normalized path. Its segments are percent-decoded once. Empty segments and the segment `.` are
/// removed, and the segment `..` removes the segment before it. Spellings of one path that a
/// service treats as equal have the same normal form.
#[derive(Clone, Debug)]
pub struct NormalPath<'p> {
    form: Form<'p>,
    ambiguity: Option<Ambiguity>,
}

#[derive(Clone, Debug)]
enum Form<'p> {
    /// A path in which all non-empty segments are already in normal form. Most paths are of this
    /// kind and need no allocation.
    Plain(&'p str),
    Segments(Vec<Cow<'p, [u8]>>),
}

impl<'p> NormalPath<'p> {
    /// Normalizes `path`, without its query, with the default options.
    #[must_use]
    pub fn new(path: &'p str) -> Self {
        Self::with_options(path, PathOptions::default())
    }

    /// Normalizes `path`, without its query, with `options`.
    #[must_use]
    pub fn with_options(path: &'p str, options: PathOptions) -> Self {
        if is_plain(path, options) {
            return Self { form: Form::Plain(path), ambiguity: None };
        }
        let (mut segments, mut ambiguity) = (Vec::new(), None);
        for part in path.split('/') {
            let part = match options.parameters {
                PathParameters::Keep => part.as_bytes(),
                PathParameters::Drop => before_parameters(part.as_bytes()),
            };
            let segment = decode(part);
            ambiguity = ambiguity.or_else(|| ambiguity_of(part, &segment));
            match &*segment {
                b"" | b"." => {}
                b".." => {
                    segments.pop();
                }
                _ if options.case == PathCase::Ignore => segments.push(fold(&segment).into()),
                _ => segments.push(segment),
            }
        }
        Self { form: Form::Segments(segments), ambiguity }
    }

    /// Returns the first reason why services interpret the path differently, if there is one.
    #[must_use]
    pub const fn ambiguity(&self) -> Option<Ambiguity> {
        self.ambiguity
    }

    /// Returns the normal form of the path as bytes, with a slash before each segment.
    pub(in crate::policy) fn bytes(&self) -> Cow<'_, [u8]> {
        match self.segments().next() {
            None => Cow::Borrowed(b"/"),
            Some(_) => {
                let segments = self.segments().flat_map(|segment| [b"/", segment]);
                Cow::Owned(segments.flatten().copied().collect())
            }
        }
    }

    /// Returns the first byte of the path's first segment, or `None` if the path has no segments.
    pub(in crate::policy) fn first_byte(&self) -> Option<u8> {
        match &self.form {
            Form::Plain(path) => path.bytes().find(|byte| *byte != b'/'),
            Form::Segments(segments) => segments.first()?.first().copied(),
        }
    }

    /// Returns the segments of the path, beginning with the first one.
    pub(in crate::policy) fn segments(&self) -> Segments<'_> {
        match &self.form {
            Form::Plain(path) => Segments::Plain(path.as_bytes()),
            Form::Segments(segments) => Segments::Decoded(segments.iter()),
        }
    }
}

/// Two paths are equal if their segments are equal.
impl PartialEq for NormalPath<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.segments().eq(other.segments())
    }
}

impl Eq for NormalPath<'_> {}

impl fmt::Display for NormalPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments().next().is_none() {
            return f.write_str("/");
        }
        self.segments().try_for_each(|segment| write!(f, "/{}", String::from_utf8_lossy(segment)))
    }
}

/// The segments of a normalized path.
#[derive(Debug)]
pub(in crate::policy) enum Segments<'a> {
    Plain(&'a [u8]),
    Decoded(slice::Iter<'a, Cow<'a, [u8]>>),
}

impl Segments<'_> {
    /// Returns whether the first bytes of the next segment and of `text` are equal. If they differ,
    /// the next segment is not `text`. If they are equal, the segment and `text` can still differ.
    pub(in crate::policy) fn begins_with(&self, text: &[u8]) -> bool {
        match self {
            Self::Plain([b'/', first, ..]) if *first != b'/' => text.first() == Some(first),
            _ => true,
        }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Plain(rest) => {
                let start = rest.iter().position(|byte| *byte != b'/')?;
                let part = &rest[start..];
                let end = part.iter().position(|byte| *byte == b'/').unwrap_or(part.len());
                let (part, after) = part.split_at(end);
                *rest = after;
                Some(part)
            }
            Self::Decoded(segments) => segments.next().map(|segment| &**segment),
        }
    }
}

/// Returns true only if the non-empty segments of `path` already have their normal form. Can also
/// return false for such a path, for example if a segment begins with a dot. The path is then
/// decoded, which gives the same segments but needs an allocation.
fn is_plain(path: &str, options: PathOptions) -> bool {
    let mut found = path.bytes().fold(0, |found, byte| found | KINDS[usize::from(byte)]);
    if options.case == PathCase::Exact {
        found &= !CASED;
    }
    match found {
        0 => true,
        // A dot that does not begin a segment is an ordinary byte.
        DOT => {
            let bytes = path.as_bytes();
            !bytes.starts_with(b".") && !bytes.windows(2).any(|two| two == b"/.")
        }
        _ => false,
    }
}

/// The class of bytes that need decoding or have a special meaning. A path with such a byte is
/// decoded.
const DECODED: u8 = 1;
/// The class of the dot. A path with a segment that begins with a dot is decoded, because the
/// segment can be `.` or `..`.
const DOT: u8 = 2;
/// The class of the bytes that can change if the difference between upper and lower case is
/// ignored.
const CASED: u8 = 4;

/// The class of each byte. Ordinary bytes have the class 0.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'%' | b'\\' | b';' | 0 => DECODED,
            b'.' => DOT,
            b'A'..=b'Z' | 0x80.. => CASED,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

/// Returns the reason why services interpret a segment differently, if there is one. `part` is the
/// segment as the client sent it, and `segment` is the decoded segment.
fn ambiguity_of(part: &[u8], segment: &[u8]) -> Option<Ambiguity> {
    let has = |byte: u8| segment.contains(&byte);
    if has(b'/') {
        return Some(Ambiguity::EncodedSlash);
    }
    if has(b'\\') {
        return Some(Ambiguity::Backslash);
    }
    if has(0) {
        return Some(Ambiguity::Nul);
    }
    // Some services remove parameters before they look for `..`, and others after.
    if matches!(before_parameters(segment), b"." | b"..") {
        return Some(Ambiguity::DotSegment);
    }
    let is_escape = |after: &[u8]| after.len() >= 2 && after[..2].iter().all(u8::is_ascii_hexdigit);
    let mut after_percent = part.split(|byte| *byte == b'%').skip(1);
    (!after_percent.all(is_escape)).then_some(Ambiguity::Escape)
}

fn before_parameters(segment: &[u8]) -> &[u8] {
    segment.iter().position(|byte| *byte == b';').map_or(segment, |at| &segment[..at])
}

/// Returns `segment` in a form that does not depend on the case of its letters. Two segments that
/// differ only in case have the same form.
pub(in crate::policy) fn fold(segment: &[u8]) -> Vec<u8> {
    match str::from_utf8(segment) {
        // The text is converted to upper case first, because some letters have several lower-case
        // forms.
        Ok(text) if !text.is_ascii() => {
            let capitals = text.chars().flat_map(char::to_uppercase);
            capitals.flat_map(char::to_lowercase).collect::<String>().into_bytes()
        }
        _ => segment.to_ascii_lowercase(),
    }
}

/// Decodes each `%xx`. A `%` without two hexadecimal digits stays unchanged. A segment without `%`,
/// the usual case, is borrowed.
pub(in crate::policy) fn decode(part: &[u8]) -> Cow<'_, [u8]> {
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

    #[test]
    fn paths_without_odd_bytes_are_borrowed() {
        let is_borrowed =
            |path, options| matches!(NormalPath::with_options(path, options).form, Form::Plain(_));
        let exact = PathOptions::default();
        let sign_in = PathOptions {
            case: PathCase::Ignore,
            parameters: PathParameters::Drop,
            ..PathOptions::default()
        };
        for path in ["", "/", "/login", "//login/", "/a/b.json", "/v1/Users/7:9@x,y+z"] {
            assert!(is_borrowed(path, exact), "{path}");
        }
        assert!(is_borrowed("/login", sign_in) && !is_borrowed("/Login", sign_in));
        for path in ["/%61", "/a;b", "/a\\b", "/./a", "/..", "/.hidden"] {
            assert!(!is_borrowed(path, exact), "{path}");
        }
    }

    #[test]
    fn letters_of_any_script_lose_their_case() {
        for (one, other) in [("LOGIN", "login"), ("É", "é"), ("\u{212a}", "k"), ("\u{17f}", "s")]
        {
            assert_eq!(fold(one.as_bytes()), fold(other.as_bytes()), "{one}");
        }
        assert_eq!(fold(b"\xffA"), b"\xffa");
    }
}
