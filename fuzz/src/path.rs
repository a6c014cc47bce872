//! Compares the normal forms of paths with a second implementation without any optimization.

use tollgate_core::policy::PathPattern;
use tollgate_core::policy::path::NormalPath;

/// Checks that two paths are equal exactly if their decoded segments are, that a path that is
/// written again from its segments has the same normal form, and that the pattern of those segments
/// matches both.
pub fn check(data: &[u8]) {
    let Some((text, place)) = crate::cut(data) else { return };
    let (Ok(one), Ok(other)) =
        (std::str::from_utf8(&text[..place]), std::str::from_utf8(&text[place..]))
    else {
        return;
    };
    let (first, second) = (segments(one), segments(other));
    assert_eq!(NormalPath::new(one) == NormalPath::new(other), first == second);
    let rewritten: String = first.iter().map(|segment| format!("/{}", escaped(segment))).collect();
    assert_eq!(NormalPath::new(&rewritten), NormalPath::new(one));
    if NormalPath::new(one).ambiguity().is_none()
        && let Ok(pattern) = PathPattern::parse(if rewritten.is_empty() { "/" } else { &rewritten })
    {
        assert!(pattern.matches(&NormalPath::new(one)), "{rewritten}");
        assert_eq!(pattern.matches(&NormalPath::new(other)), first == second, "{rewritten}");
    }
}

/// Returns the segments of `path`: decoded once, without `.` and empty ones, `..` resolved.
fn segments(path: &str) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    for part in path.split('/') {
        let segment: Vec<u8> = percent_encoding::percent_decode_str(part).collect();
        match segment.as_slice() {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    segments
}

fn escaped(segment: &[u8]) -> String {
    segment.iter().map(|byte| format!("%{byte:02X}")).collect()
}
