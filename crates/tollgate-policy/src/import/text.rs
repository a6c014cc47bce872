//! Writes YAML in a form that every YAML reader interprets in the same way.

use std::fmt::Write;

use tollgate_core::policy::descriptors::Metadata;

/// The largest width, in characters, of a mapping that is written on one line.
const MAX_WIDTH: usize = 110;

/// The keys and values of a mapping, in the order in which they are written.
#[derive(Debug, Default)]
pub(super) struct Mapping(Vec<(&'static str, Item)>);

/// The value of a key in a [`Mapping`]: a text or a list of mappings.
#[derive(Debug)]
pub(super) enum Item {
    /// A text that is written without changes.
    Raw(String),
    /// A list of mappings.
    List(Vec<Mapping>),
}

impl Mapping {
    /// Adds a key whose value is the text `text`. The text is written in quotes if necessary.
    pub(super) fn text(&mut self, key: &'static str, text: &str) {
        self.raw(key, scalar(text));
    }

    /// Adds a key with a value that is already valid YAML and needs no quotes.
    pub(super) fn raw(&mut self, key: &'static str, value: impl Into<String>) {
        self.0.push((key, Item::Raw(value.into())));
    }

    /// Adds a key with a list.
    pub(super) fn list(&mut self, key: &'static str, items: Vec<Self>) {
        self.0.push((key, Item::List(items)));
    }

    /// Returns the mapping on one line, or `None` if it contains a list of mappings.
    pub(super) fn inline(&self) -> Option<String> {
        let pairs = self.0.iter().map(|(key, item)| match item {
            Item::Raw(value) => Some(format!("{key}: {value}")),
            Item::List(_) => None,
        });
        let pairs: Vec<String> = pairs.collect::<Option<_>>()?;
        Some(if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) })
    }

    /// Writes the mapping as an element of a list with an indentation of `indent`.
    pub(super) fn write_item(&self, out: &mut String, indent: usize) {
        let inline = self.inline().filter(|line| indent + 2 + line.len() <= MAX_WIDTH);
        if let Some(line) = inline {
            out.push_str(&format!("{:indent$}- {line}\n", ""));
            return;
        }
        for (index, (key, item)) in self.0.iter().enumerate() {
            let lead = if index == 0 { "- " } else { "  " };
            // Writing to a string cannot fail.
            let _ = match item {
                Item::Raw(value) => writeln!(out, "{:indent$}{lead}{key}: {value}", ""),
                Item::List(_) => writeln!(out, "{:indent$}{lead}{key}:", ""),
            };
            if let Item::List(items) = item {
                items.iter().for_each(|item| item.write_item(out, indent + 4));
            }
        }
    }
}

/// Returns `text` as a YAML value. The text is in quotes if a YAML reader could interpret it as
/// another type.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-*".contains(letter);
    let begins_plain =
        text.starts_with(|first: char| first.is_ascii_alphabetic() || "_/".contains(first));
    let is_word = matches!(
        &*text.to_ascii_lowercase(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    if begins_plain && !is_word && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if is_shown_everywhere(letter) => quoted.push(letter),
            letter => quoted.push_str(&format!("\\U{:08X}", u32::from(letter))),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns `texts` as a YAML list on one line.
pub(super) fn scalars<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    format!("[{}]", texts.map(scalar).collect::<Vec<_>>().join(", "))
}

/// Returns a JSON value as YAML on one line.
pub(super) fn metadata(value: &Metadata) -> String {
    match value {
        Metadata::Null => "~".to_owned(),
        Metadata::Bool(value) => value.to_string(),
        Metadata::Number(number) => number.to_string(),
        Metadata::Text(text) => scalar(text),
        Metadata::List(values) => {
            format!("[{}]", values.iter().map(metadata).collect::<Vec<_>>().join(", "))
        }
        Metadata::Map(pairs) => {
            let pair = |(name, value): &(Box<str>, Metadata)| {
                format!("{}: {}", scalar(name), metadata(value))
            };
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn is_shown_everywhere(letter: char) -> bool {
    crate::quote::is_shown(letter) && !matches!(letter, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_they_could_be_something_else() {
        for (text, expected) in [
            ("generic_key", "generic_key"),
            ("/search*", "/search*"),
            ("*", "\"*\""),
            ("10.0.0.1", "\"10.0.0.1\""),
            ("Yes", "\"Yes\""),
            ("a: b", "\"a: b\""),
            ("a,b", "\"a,b\""),
            ("", "\"\""),
            ("\"\\", "\"\\\"\\\\\""),
            ("a\n\u{85}", "\"a\\U0000000A\\U00000085\""),
            ("é", "\"é\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }
}
