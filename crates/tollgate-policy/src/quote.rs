//! Quotes text from policy files for messages.

/// Returns `text` in quotes, for a message. The result is one line, control characters are escaped,
/// and everything after 48 characters is left out.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_QUOTED: usize = 48;
    let mut shown = String::from("\"");
    for letter in text.chars().take(MAX_QUOTED) {
        if is_shown(letter) {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_default());
        }
    }
    shown.push_str(if text.chars().nth(MAX_QUOTED).is_some() { "…\"" } else { "\"" });
    shown
}

/// Returns whether the character can be written to a terminal unchanged: it is not a control
/// character and does not change the direction of the text.
pub(crate) fn is_shown(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
