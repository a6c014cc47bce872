//! Suggestions for misspelt names.

use strsim::osa_distance;

/// The maximum length in bytes of a name for which a suggestion is searched. Longer names are
/// rarely typos of a few letters, and comparing them takes time.
const MAX_COMPARED: usize = 64;

/// Returns the known name that is most similar to `name`. Returns `None` if no known name is so
/// similar that `name` can be a misspelling of it.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    if name.is_empty() || name.len() > MAX_COMPARED {
        return None;
    }
    let length = name.chars().count();
    let slips = 1 + length / 4;
    // The distance is at least the difference of the lengths, so most names need no comparison.
    let is_near = |other: &&str| other.chars().count().abs_diff(length) <= slips;
    known
        .into_iter()
        .filter(|other| other.len() <= MAX_COMPARED && is_near(other))
        .map(|other| (osa_distance(&name, &plain(other)), other))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Returns a name in lower case with `-` replaced by `_`, so that names are compared without these
/// differences.
fn plain(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn slips_of_the_hand_are_understood() {
        let known = ["anonymous", "core", "search", "window"];
        for (name, expected) in [
            ("anonimous", Some("anonymous")),
            ("Core", Some("core")),
            ("serach", Some("search")),
            ("windows", Some("window")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(suggest(name, known), expected, "{name}");
        }
        assert_eq!(suggest(&"core".repeat(1000), known), None);
    }

    #[test]
    fn a_suggestion_can_differ_in_length_by_as_many_letters_as_in_content() {
        assert_eq!(suggest("core", ["corexx"]), Some("corexx"));
        assert_eq!(suggest("core", ["co"]), Some("co"));
        assert_eq!(suggest("core", ["corexxx"]), None);
        assert_eq!(suggest("core", ["c"]), None);
        assert_eq!(suggest("naïve-é", ["naïve"]), Some("naïve"));
    }

    #[test]
    fn the_closest_name_is_suggested() {
        assert_eq!(suggest("cors", ["core", "cost", "cors_"]), Some("core"));
        assert_eq!(
            suggest("fixed-window", ["fixed_windows", "fixed_window"]),
            Some("fixed_window")
        );
    }
}
