//! The value types for windows: a duration, or a period of a calendar with its time zone.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::Millis;

use super::duration::{PATTERN, millis};
use super::{Decode, quoted, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::Node;

/// The value of the key `window`: a length, or a period of a calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WindowLength {
    /// All windows have this length.
    Duration(Millis),
    /// The windows are periods of a calendar, such as days or months.
    Calendar(CalendarUnit),
}

/// A period of a calendar: a day, a week, a month or a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarUnit {
    Day,
    Week,
    Month,
    Year,
}

impl CalendarUnit {
    const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Year];

    /// Returns the unit's word in a policy file.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

/// Words for calendar windows in other rate limiters. The second element of a pair is the word for
/// the same window in a policy file. Hints contain it.
const SYNONYMS: [(&str, &str); 8] = [
    ("daily", "day"),
    ("days", "day"),
    ("weekly", "week"),
    ("weeks", "week"),
    ("monthly", "month"),
    ("months", "month"),
    ("yearly", "year"),
    ("years", "year"),
];

impl Decode for WindowLength {
    const EXPECTED: &'static str =
        "a duration such as 10s, 15m, 1h or 1h30m, or day, week, month, year";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        if let Some(unit) = CalendarUnit::ALL.into_iter().find(|unit| unit.word() == text) {
            return Some(Self::Calendar(unit));
        }
        let letters = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let hint = match millis(text) {
            Ok(millis) => return Some(Self::Duration(millis)),
            Err(_) if matches!(letters, "mo" | "M" | "month" | "months") => {
                "a calendar month is `month`, a fixed length is 30d".into()
            }
            Err(hint) => match SYNONYMS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)) {
                Some((_, own)) => format!("use `{own}`").into(),
                None => hint,
            },
        };
        unexpected_but(node, Self::EXPECTED, &hint, report);
        None
    }
}

impl JsonSchema for WindowLength {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration such as 250ms, 10s, 15m, 1h, 1d or 1h30m, or a period of the calendar.",
            "anyOf": [
                { "type": "string", "pattern": PATTERN },
                { "enum": CalendarUnit::ALL.map(CalendarUnit::word) },
            ],
        })
    }
}

/// The name of a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone(pub(crate) String);

impl Decode for Zone {
    const EXPECTED: &'static str = "a time zone such as Europe/Berlin";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Some(text) = node.text() else {
            unexpected(node, Self::EXPECTED, report);
            return None;
        };
        if tollgate_calendar::is_zone(text) {
            return Some(Self(text.to_owned()));
        }
        let message = format!("unknown time zone {}", quoted(text));
        if text.starts_with(['+', '-']) || text.starts_with("UTC") || text.starts_with("GMT") {
            let hint =
                "use the name of a place, such as Europe/Berlin: an offset has no summer time";
            report.error(node.at, message, hint);
            return None;
        }
        let zones = tollgate_calendar::zones();
        // Some authors write only the city of a time zone, without the continent.
        let city = |zone: &&String| {
            zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(text))
        };
        match zones.iter().find(city) {
            Some(zone) => report.error(node.at, message, format_args!("did you mean {zone:?}?")),
            None => match crate::suggest::suggest(text, zones.iter().map(String::as_str)) {
                Some(zone) => {
                    report.error(node.at, message, format_args!("did you mean {zone:?}?"));
                }
                None => report.error(node.at, message, "use an IANA name such as Europe/Berlin"),
            },
        }
        None
    }
}

impl JsonSchema for Zone {
    fn schema_name() -> Cow<'static, str> {
        "TimeZone".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An IANA time zone such as Europe/Berlin.",
            "type": "string",
            "pattern": "^[A-Za-z]",
        })
    }
}
