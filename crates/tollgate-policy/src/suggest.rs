//! Suggestions for misspelt names.

/// Longer names are not compared: it takes time, and typos of a few letters in them are rare.
const MAX_COMPARED: usize = 64;

/// Returns the known name that is most similar to `name`, if it is similar enough to be a typo.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = plain(name);
    if letters.is_empty() || letters.len() > MAX_COMPARED {
        return None;
    }
    let slips = 1 + letters.len() / 4;
    known
        .into_iter()
        .filter(|other| other.len() <= MAX_COMPARED)
        .map(|other| (distance(&letters, &plain(other)), other))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Normalizes a name: lower case, with `_` for `-`.
fn plain(name: &str) -> Vec<char> {
    let letter = |letter: char| if letter == '-' { '_' } else { letter.to_ascii_lowercase() };
    name.chars().map(letter).collect()
}

/// Returns the number of letters to insert, delete, change or swap with their neighbour (the
/// optimal string alignment distance, after Damerau and Levenshtein).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, from_letter) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to_letter) in to.iter().enumerate() {
            let changed = above[j] + usize::from(from_letter != to_letter);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            let is_swap = i > 0 && j > 0 && *from_letter == to[j - 1] && from[i - 1] == *to_letter;
            if is_swap {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
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
    fn the_closest_name_is_suggested() {
        assert_eq!(suggest("cors", ["core", "cost", "cors_"]), Some("core"));
        assert_eq!(
            suggest("fixed-window", ["fixed_windows", "fixed_window"]),
            Some("fixed_window")
        );
    }
}
