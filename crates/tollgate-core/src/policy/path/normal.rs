//! Paths of requests in one normal form, and those that services read in different ways.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, slice, str};

use crate::policy::Ambiguity;

/// How paths are compared with patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// Whether upper and lower case differ.
    pub case: PathCase,
    /// What becomes of the parameters of a segment.
    pub parameters: PathParameters,
    /// What becomes of requests with a path that services read in different ways.
    pub ambiguous: AmbiguousPaths,
}

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathCase {
    /// `/Login` is not `/login`.
    #[default]
    Exact,
    /// `/Login` is `/login`: for services that compare so.
    Ignore,
}

/// What becomes of the parameters of a segment, such as `;v=1` in `/login;v=1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathParameters {
    /// They are part of the segment.
    #[default]
    Keep,
    /// They do not count: for services that remove them.
    Drop,
}

/// What becomes of requests with a path that services read in different ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmbiguousPaths {
    /// They are refused.
    #[default]
    Refuse,
    /// They are matched by their decoded segments.
    Pass,
}

/// A path in its one normal form: segments percent-decoded once, empty ones and `.` dropped, `..`
/// resolved. Ways to write one path that a service treats alike do not make two of it.
#[derive(Clone, Debug)]
pub struct NormalPath<'p> {
    form: Form<'p>,
    ambiguity: Option<Ambiguity>,
}

#[derive(Clone, Debug)]
enum Form<'p> {
    /// A path that is in normal form but for empty segments: most are, and take no memory.
    Plain(&'p str),
    Segments(Vec<Cow<'p, [u8]>>),
}

impl<'p> NormalPath<'p> {
    /// Brings `path`, without its query, into normal form by the default options.
    #[must_use]
    pub fn new(path: &'p str) -> Self {
        Self::with_options(path, PathOptions::default())
    }

    /// Brings `path`, without its query, into normal form by `options`.
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

    /// Why services read the path in different ways, if they do. The first reason of several.
    #[must_use]
    pub const fn ambiguity(&self) -> Option<Ambiguity> {
        self.ambiguity
    }

    /// Its segments, from the first one on.
    pub(super) fn segments(&self) -> Segments<'_> {
        match &self.form {
            Form::Plain(path) => Segments::Plain(path.split('/')),
            Form::Segments(segments) => Segments::Decoded(segments.iter()),
        }
    }
}

/// Two paths are equal if their segments are.
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

/// The segments of a path in normal form.
#[derive(Debug)]
pub(super) enum Segments<'a> {
    Plain(str::Split<'a, char>),
    Decoded(slice::Iter<'a, Cow<'a, [u8]>>),
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Plain(parts) => parts.find(|part| !part.is_empty()).map(str::as_bytes),
            Self::Decoded(segments) => segments.next().map(|segment| &**segment),
        }
    }
}

/// Whether the segments of `path` that are not empty stand as they are in normal form.
fn is_plain(path: &str, options: PathOptions) -> bool {
    let ignores_case = options.case == PathCase::Ignore;
    let mut begins = true;
    for byte in path.bytes() {
        match byte {
            b'%' | b'\\' | b';' | 0 => return false,
            b'.' if begins => return false,
            b'A'..=b'Z' | 0x80.. if ignores_case => return false,
            _ => begins = byte == b'/',
        }
    }
    true
}

/// Why services read this segment in different ways, if they do: `part` is how it was sent.
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

/// `segment` as all segments are written that differ from it by the case of letters alone.
pub(super) fn fold(segment: &[u8]) -> Vec<u8> {
    match str::from_utf8(segment) {
        // By way of capitals, so that letters with several small forms become one.
        Ok(text) if !text.is_ascii() => {
            let capitals = text.chars().flat_map(char::to_uppercase);
            capitals.flat_map(char::to_lowercase).collect::<String>().into_bytes()
        }
        _ => segment.to_ascii_lowercase(),
    }
}

/// Decodes `%xx`; a `%` that begins no such triple stays. Most parts have none, and are borrowed.
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
