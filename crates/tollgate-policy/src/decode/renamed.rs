//! Keys and values of policy files that were renamed. If a file has an old name, the hint of the
//! error message contains the new name.

/// The renamed keys: pairs of the old name and the new name. If an old name had two meanings, it
/// occurs twice, once with each new name.
const KEYS: &[(&str, &str)] = &[
    ("at_least", "min"),
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

/// The renamed values: pairs of the old word and the new word.
const WORDS: &[(&str, &str)] =
    &[("app", "node"), ("carry", "transfer"), ("restart", "reset"), ("start_afresh", "reset")];

/// Returns the new name of the key `old`, if it was renamed and `known` contains the new name.
pub(super) fn key(old: &str, known: &[&'static str]) -> Option<&'static str> {
    find(KEYS, old, known)
}

/// Returns the new name of the word `old`, if it was renamed and `known` contains the new name.
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
