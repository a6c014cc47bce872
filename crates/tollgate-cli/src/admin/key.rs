//! How limits stand for a subject.

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use http::Method;
use serde_json::{Map, Value};
use tollgate::{Clock, SystemClock};

use super::Door;
use super::overrides;
use crate::cmd::Failure;
use crate::cmd::shards::print as print_text;

pub(crate) use crate::cmd::shards::Form;

/// Whom it is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct Subject {
    /// A value for each subject that the limits count by; NAME alone is who has none
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
}

impl Subject {
    /// As members of a JSON object.
    pub(crate) fn members(&self) -> Map<String, Value> {
        self.pairs().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// As parameters of a query, within `word`.
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

/// How limits stand, and which overrides say so.
pub(crate) async fn show(
    door: &Door,
    limits: &[String],
    subject: &Subject,
) -> Result<Value, Failure> {
    door.ask(Method::GET, &path(limits, subject), None).await
}

/// Forgets what the subject used, and tells how limits stand then.
pub(crate) async fn reset(
    door: &Door,
    limits: &[String],
    subject: &Subject,
) -> Result<Value, Failure> {
    door.ask(Method::DELETE, &path(limits, subject), None).await
}

fn path(limits: &[String], subject: &Subject) -> String {
    let limits: Vec<_> = limits.iter().map(|name| format!("limit={}", encoded(name))).collect();
    format!("/v1/standing?{}{}", limits.join("&"), subject.parameters("subject"))
}

/// Prints what [`show`] and [`reset`] told.
pub(crate) fn print(answer: &Value, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return print_text(&format!("{answer:#}\n"));
    }
    let mut table = table(&["limit", "used", "of", "left", "resets"]);
    for standing in members(&answer["standings"]) {
        let number = |name: &str| standing[name].as_u64().unwrap_or_default();
        table.add_row([
            word(&standing["name"]),
            number("used").to_string(),
            number("limit").to_string(),
            number("remaining").to_string(),
            when(number("reset")),
        ]);
    }
    let mut text = lines(&table);
    for one in members(&answer["overrides"]) {
        text += &format!("override: {}\n", overrides::sentence(one));
    }
    print_text(&text)
}

/// A table without lines.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Its lines, without what would fill them up.
pub(super) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim())).collect()
}

/// The members of a list.
pub(super) fn members(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// A text of the node's, without what would steer the terminal.
pub(super) fn word(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// A second of the epoch as it is from now, rounded.
pub(super) fn when(second: u64) -> String {
    match second.saturating_sub(SystemClock.now().as_millis() / 1_000) {
        0 => "now".to_owned(),
        left @ 1..=119 => format!("in {left} s"),
        left @ 120..=7_199 => format!("in {} min", (left + 30) / 60),
        left @ 7_200..=172_799 => format!("in {} h", (left + 1_800) / 3_600),
        left => format!("in {} d", left.saturating_add(43_200) / 86_400),
    }
}

/// `text` as a part of a query.
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

    #[test]
    fn nothing_that_a_node_tells_steers_the_terminal() {
        assert_eq!(word(&Value::from("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
    }
}
