//! The subject of a command: read from the flags, and sent to the admin listener as query
//! parameters.

use clap::Args;
use serde_json::{Map, Value};

/// The subject.
#[derive(Clone, Debug, Args)]
pub(crate) struct Subject {
    /// A value for each subject in the limit's `per`; NAME alone means a request without a value
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
}

impl Subject {
    /// Returns the values as members of a JSON object.
    pub(crate) fn members(&self) -> Map<String, Value> {
        self.pairs().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// Returns the values as the query parameters `word[NAME]=VALUE`, each after a `&`.
    pub(crate) fn parameters(&self, word: &str) -> String {
        let parameter = |(name, value): (&str, Option<&str>)| {
            let value = value.map(|value| format!("={}", encoded(value))).unwrap_or_default();
            format!("&{word}[{}]{value}", encoded(name))
        };
        self.pairs().map(parameter).collect()
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.values.iter().map(|text| match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value)),
            None => (text.trim(), None),
        })
    }
}

/// Percent-encodes `text` for a query.
pub(super) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_part_of_a_query() {
        let values = vec!["token=a b&c=d%é".to_owned(), "none".to_owned()];
        let subject = Subject { values };
        let expected = "&subject[token]=a%20b%26c%3Dd%25%C3%A9&subject[none]";
        assert_eq!(subject.parameters("subject"), expected);
        assert_eq!(subject.members()["none"], Value::Null);
    }
}
