//! Keys and words that had another name before.

/// Keys: the old name and the new one. An old name with two new ones had a meaning in each of two mappings.
const KEYS: &[(&str, &str)] = &[
    ("at_most", "max_units"),
    ("at_most", "max"),
    ("authorities", "ca"),
    ("clients", "client_ca"),
    ("compared_with", "shadow_store"),
    ("hold", "reservation"),
    ("lease", "permit_ttl"),
    ("max", "max_duration"),
    ("otherwise", "default"),
    ("remember_refusals", "deny_cache"),
    ("show", "enabled"),
    ("standing", "status_path"),
    ("step", "scripting"),
];

/// Words that are values: the old one and the new one.
const WORDS: &[(&str, &str)] =
    &[("app", "node"), ("carry", "transfer"), ("restart", "reset"), ("start_afresh", "reset")];

/// The name among `known` that the key `old` has now.
pub(super) fn key(old: &str, known: &[&'static str]) -> Option<&'static str> {
    find(KEYS, old, known)
}

/// The name among `known` that the word `old` has now.
pub(super) fn word(old: &str, known: &[&'static str]) -> Option<&'static str> {
    find(WORDS, old, known)
}

fn find(
    renamed: &[(&str, &'static str)],
    old: &str,
    known: &[&'static str],
) -> Option<&'static str> {
    let mut news = renamed.iter().filter(|(was, _)| *was == old).map(|(_, new)| *new);
    news.find(|new| known.contains(new))
}
