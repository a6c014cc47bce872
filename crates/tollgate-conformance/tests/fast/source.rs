//! Reads the Rust source for the tests of the repository, and removes comments, strings and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns the folders of the crates by name, in alphabetical order.
pub(crate) fn crates() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates").flatten();
    let mut crates: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(_, folder)| folder.join("Cargo.toml").is_file())
        .collect();
    crates.sort();
    assert!(crates.len() > 8, "only {} crates found: is this the repository?", crates.len());
    crates
}

/// Returns `text` with every comment, string and character literal replaced by spaces, line by
/// line.
pub(crate) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            code.extend(text[at..end].chars().filter(|it| *it == '\n'));
            code.push(' ');
            at = end;
        } else {
            let next = text[at..].chars().next().expect("a character begins here");
            code.push(next);
            at += next.len_utf8();
        }
    }
    code
}

/// Returns the end of the comment, string or character literal that starts at `at`. Returns `at` if
/// no comment or literal starts there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    // A raw byte string, `br"…"`, is treated like a raw string.
    let word = if at > 0 && bytes[at - 1] == b'b' { at - 1 } else { at };
    let follows_word = word > 0 && is_word(bytes[word - 1]);
    if rest.starts_with(b"//") {
        at + rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len())
    } else if rest.starts_with(b"/*") {
        at + comment_length(rest)
    } else if rest[0] == b'"' {
        at + quoted_length(rest, b'"')
    } else if rest[0] == b'\'' && is_character(rest) {
        at + quoted_length(rest, b'\'')
    } else if !follows_word && (rest.starts_with(b"r\"") || rest.starts_with(b"r#")) {
        at + raw_length(rest)
    } else {
        at
    }
}

fn comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Returns whether `rest` starts with a character literal. A lifetime also starts with a single
/// quote.
fn is_character(rest: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&rest[1..rest.len().min(6)]).into_owned();
    let mut characters = text.chars();
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Returns the length of `r"…"` or `r#"…"#`, or 0 for a raw identifier such as `r#type`.
fn raw_length(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|it| **it == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let from = hashes + 2;
    let closes = rest[from..].windows(end.len()).position(|window| window == end);
    closes.map_or(rest.len(), |at| from + at + end.len())
}

/// Returns `code` without the items that have the attribute `#[cfg(test)]` or a `cfg` attribute
/// that starts with `all(test`.
pub(crate) fn shipped(code: &str) -> String {
    let mut shipped = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) =
        ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|it| rest.find(it)).min()
    {
        shipped.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[item_length(rest)..];
    }
    shipped.push_str(rest);
    shipped
}

/// Returns the length of the item at the start of `code`. The item ends with its `;` or its closing
/// brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, it) in code.char_indices() {
        match it {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && it == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn comments_strings_and_tests_are_no_code() {
    let text = "a /* b /* c */ d */ e // f\n\"g\\\"h\" 'i' '\\'' &'j r#\"k\"l\"# m\n#[cfg(test)]\nmod n { fn o() {} }\np";
    let words: Vec<_> = shipped(&code(text)).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "e", "&'j", "m", "p"]);
}
