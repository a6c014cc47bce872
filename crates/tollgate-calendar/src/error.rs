//! The errors that can occur when a calendar is created.

use std::fmt;

/// The largest number of different calendars in a process. A calendar is kept until the process
/// ends, because limits refer to it. When a policy is loaded again, its calendars are reused.
pub const MAX_CALENDARS: usize = 4_096;

/// The reason why a calendar cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CalendarError {
    /// No time zone has this name.
    UnknownZone(String),
    /// No month has a day with this number.
    NoSuchDay(u8),
    /// The process has [`MAX_CALENDARS`] different calendars.
    TooMany,
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownZone(zone) => {
                write!(f, "unknown time zone {zone:?}: use an IANA name such as Europe/Berlin")
            }
            Self::NoSuchDay(day) => write!(f, "a month has no day {day}: use 1 to 31"),
            Self::TooMany => write!(
                f,
                "the process already has {MAX_CALENDARS} different calendars: restart it to \
                 release those that are no longer used"
            ),
        }
    }
}

impl std::error::Error for CalendarError {}
