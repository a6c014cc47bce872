//! Formats the responses of a node for a terminal.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use tollgate::{Clock, SystemClock};

/// Returns an empty table without borders, with the columns in `header`.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Returns the table's lines without leading and trailing spaces.
pub(super) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim())).collect()
}

/// Returns the elements of a JSON list, or no elements if `list` is not a list.
pub(super) fn members(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text of the node without control characters for the terminal.
pub(super) fn word(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let steers = |char: char| {
        char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if steers(char) { '\u{fffd}' } else { char }).collect()
}

/// Returns the rounded time from now until `second`, which is given in seconds since the Unix
/// epoch.
pub(super) fn when(second: u64) -> String {
    match second.saturating_sub(SystemClock.now().as_millis() / 1_000) {
        0 => "now".to_owned(),
        left @ 1..=119 => format!("in {left} s"),
        left @ 120..=7_199 => format!("in {} min", (left + 30) / 60),
        left @ 7_200..=172_799 => format!("in {} h", (left + 1_800) / 3_600),
        left => format!("in {} d", left.saturating_add(43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_node_reports_steers_the_terminal() {
        assert_eq!(word(&Value::from("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
        assert_eq!(word(&Value::from("a\u{202e}b\u{2066}")), "a\u{fffd}b\u{fffd}");
    }
}
