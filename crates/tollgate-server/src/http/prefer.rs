//! The caller's preference for the amount of detail in a response, as defined by [RFC
//! 7240](https://www.rfc-editor.org/rfc/rfc7240).

use axum::http::{HeaderMap, HeaderName};

/// The header field of the preference.
pub(super) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The amount of detail in a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Detail {
    /// All members.
    #[default]
    Full,
    /// All members except for those that only some callers use and that take the most time to
    /// write: the receipt, and the header fields for the caller's own client.
    Minimal,
}

impl Detail {
    /// Reads the preference of `fields`. The first `return` preference counts. Unknown preferences
    /// are ignored.
    pub(super) fn preferred(fields: &HeaderMap) -> Self {
        match fields.get(PREFER) {
            None => Self::Full,
            // The usual spelling is compared as a whole: parsing it would take half of the time
            // that the shorter response saves.
            Some(line) if line == "return=minimal" => Self::Minimal,
            Some(_) => Self::listed(fields),
        }
    }

    fn listed(fields: &HeaderMap) -> Self {
        let lines = fields.get_all(PREFER).iter().filter_map(|line| line.to_str().ok());
        let wanted = lines.flat_map(|line| line.split(',')).find_map(wanted_return);
        match wanted {
            Some(wanted) if wanted.eq_ignore_ascii_case("minimal") => Self::Minimal,
            _ => Self::Full,
        }
    }
}

/// Returns the value of a `return` preference, or `None` if `preference` is another preference. Its
/// parameters are ignored.
fn wanted_return(preference: &str) -> Option<&str> {
    let (preference, _) = preference.split_once(';').unwrap_or((preference, ""));
    let (name, value) = preference.split_once('=')?;
    let is_it = name.trim().eq_ignore_ascii_case("return");
    is_it.then(|| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(lines: &[&'static str]) -> Detail {
        let lines = lines.iter().map(|line| (PREFER, line.parse().unwrap()));
        Detail::preferred(&lines.collect())
    }

    #[test]
    fn the_first_word_on_it_counts() {
        for line in [
            "return=minimal",
            "RETURN = \"minimal\"; foo",
            "respond-async, wait=10, return=minimal",
            "return=minimal, return=representation",
        ] {
            assert_eq!(preferred(&[line]), Detail::Minimal, "{line}");
        }
        assert_eq!(preferred(&["wait=10", "return=minimal"]), Detail::Minimal);
        for line in
            ["", ",", "minimal", "return", "return=", "return=representation", "x=return=minimal"]
        {
            assert_eq!(preferred(&[line]), Detail::Full, "{line}");
        }
        assert_eq!(preferred(&["return=representation", "return=minimal"]), Detail::Full);
        assert_eq!(preferred(&[]), Detail::Full);
    }
}
