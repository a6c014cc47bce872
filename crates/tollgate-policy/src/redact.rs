//! Masks secrets in the lines of a policy file that messages show: the passwords in URLs, and
//! secrets that the file contains by mistake.

/// The character that replaces each character of a password.
pub(crate) const MASK: char = '•';

/// Returns `line` with the passwords in its URLs masked, and with secrets masked that the file
/// contains by mistake. All other characters keep their positions.
///
/// A line with mistakes can contain incomplete URLs, so the function masks too much rather than too
/// little. In each word it masks the text from the first colon after `://` to the last `@`, and
/// everything after `pass=`.
pub(crate) fn redact(line: &str) -> String {
    let line = &*masked_literal(line);
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'');
    line.split_inclusive(is_end).map(redact_word).collect()
}

/// Returns `line` with a secret masked that the file contains by mistake: the text after a key such
/// as `password`. The text is not masked if it states where the secret comes from, such as an
/// environment variable.
fn masked_literal(line: &str) -> String {
    let value = |key: &str| {
        let (before, after) = line.split_once(key)?;
        let after = after.trim_start_matches(['"', '\'']).trim_start();
        let value = after.strip_prefix(':')?.trim_start();
        let is_literal =
            !value.is_empty() && !value.starts_with(['{', '[', '#', '&', '*', '|', '>']);
        (is_literal && !before.contains('#')).then_some(line.len() - value.len())
    };
    let first = ["secret", "password", "tokens"].into_iter().filter_map(value).min();
    let Some(start) = first else { return line.to_owned() };
    let hidden = line[start..].chars().map(|_| MASK);
    line[..start].chars().chain(hidden).collect()
}

/// Returns `word`, one word of a line, with its passwords masked, as [`redact`] does.
pub(crate) fn redact_word(word: &str) -> String {
    let Some(scheme) = word.find("://") else { return word.to_owned() };
    let authority = scheme + "://".len();
    let mut hidden = Vec::new();
    if let (Some(colon), Some(at)) = (word[authority..].find(':'), word.rfind('@')) {
        hidden.push(authority + colon + 1..at);
    }
    if let Some(parameter) = word.find("pass=") {
        let value = parameter + "pass=".len();
        let end = word[value..].find(['&', '"', '\'', ' ', '\t']).map(|end| value + end);
        hidden.push(value..end.unwrap_or(word.len()));
    }
    let shown = |(place, letter)| match hidden.iter().any(|range| range.contains(&place)) {
        true => MASK,
        false => letter,
    };
    word.char_indices().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn passwords_are_not_shown_and_nothing_moves() {
        for (line, expected) in [
            ("a: { primary: redis://h:1 }", "a: { primary: redis://h:1 }"),
            ("b: 'redis://u:secret@h:1', c", "b: 'redis://u:••••••@h:1', c"),
            ("b: \"rediss://:s/e@c:é#t@h\"", "b: \"rediss://:•••••••••@h\""),
            ("unix:///s?pass=secret&db=1", "unix:///s?pass=••••••&db=1"),
            ("unix:///s?pass=secret", "unix:///s?pass=••••••"),
            ("redis://user@h:1 me@example.com", "redis://user@h:1 me@example.com"),
            ("é://:@", "é://:@"),
            ("secret: hunter2", "secret: •••••••"),
            ("store: { redis: { password: 'a, b' } }", "store: { redis: { password: ••••••••••"),
            ("secret: { env: TOLLGATE_SECRET }", "secret: { env: TOLLGATE_SECRET }"),
            ("password:", "password:"),
        ] {
            assert_eq!(redact(line), expected, "{line}");
            assert_eq!(redact(line).chars().count(), line.chars().count(), "{line}");
        }
    }
}
