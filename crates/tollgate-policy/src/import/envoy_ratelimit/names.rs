//! Unique names for the limits of a generated policy. A name is made from the limit's own name, or
//! from the limit's position in the descriptor tree.

use std::collections::HashSet;

use tollgate_core::limit::MAX_NAME;

/// The names of limits that are already used or reserved.
#[derive(Debug, Default)]
pub(super) struct LimitNames {
    given: HashSet<String>,
    reserved: HashSet<String>,
}

impl LimitNames {
    /// Reserves the name `name`, which the key `replaces` of a descriptor contains. Only a limit
    /// that has this name in the imported file can get it. The generated names of other limits
    /// differ from it, so `replaces` does not match those limits.
    pub(super) fn reserve(&mut self, name: &str) {
        self.reserved.insert(name.to_owned());
    }

    /// Returns a unique name for a limit that has the name `name` in the imported file.
    pub(super) fn of_name(&mut self, name: &str) -> String {
        self.unique(plain(name), |_| false)
    }

    /// Returns a unique name for a limit without a name. `parts` are the keys and values that lead
    /// to the limit in the descriptor tree.
    pub(super) fn of_path<'t>(&mut self, parts: impl Iterator<Item = &'t str>) -> String {
        let parts: Vec<String> = parts.map(plain).filter(|part| !part.is_empty()).collect();
        let reserved = std::mem::take(&mut self.reserved);
        let name = self.unique(parts.join("."), |name| reserved.contains(name));
        self.reserved = reserved;
        name
    }

    fn unique(&mut self, base: String, is_reserved: impl Fn(&str) -> bool) -> String {
        let base = if base.is_empty() { "limit".to_owned() } else { base };
        let numbers = (2_u32..).map(|number| format!("-{number}"));
        let mut suffixes = std::iter::once(String::new()).chain(numbers);
        let name = suffixes.find_map(|suffix| {
            // A name contains only ASCII characters, so the number of bytes is the number of
            // characters.
            let length = base.len().min(MAX_NAME - suffix.len());
            let name = format!("{}{suffix}", base[..length].trim_end_matches(['-', '.']));
            (!self.given.contains(&name) && !is_reserved(&name)).then_some(name)
        });
        let name = name.unwrap_or(base);
        self.given.insert(name.clone());
        name
    }
}

/// Returns `text` with `-` in place of the characters that a name cannot contain. Several such
/// characters in a row become one `-`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => plain.push(letter),
            _ if plain.is_empty() || plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    plain.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_unique_and_short_enough() {
        let mut names = LimitNames::default();
        let mut name = |parts: &[&str]| names.of_path(parts.iter().copied());
        assert_eq!(name(&["edge", "path", "/search*"]), "edge.path.search");
        assert_eq!(name(&["edge", "path", "/search"]), "edge.path.search-2");
        assert_eq!(name(&["edge", "path", "/sea rch//x"]), "edge.path.sea-rch-x");
        assert_eq!(name(&["日本", "*"]), "limit");
        assert_eq!(name(&["*"]), "limit-2");
        let long = "x".repeat(100);
        assert_eq!(name(&[&long]), "x".repeat(MAX_NAME));
        assert_eq!(name(&[&long]), format!("{}-2", "x".repeat(MAX_NAME - 2)));
    }

    #[test]
    fn a_name_that_is_replaced_is_given_to_those_who_have_it() {
        let mut names = LimitNames::default();
        names.reserve("users");
        assert_eq!(names.of_path(["users"].into_iter()), "users-2");
        assert_eq!(names.of_name("users"), "users");
        assert_eq!(names.of_name("users"), "users-3");
    }
}
