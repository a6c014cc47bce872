//! The common log format's time, `17/May/2015:10:05:03 +0000`.

use super::calendar::{days, four, millis, offset, second_of_day, two};

/// The length of a time in the common log format.
const LENGTH: usize = 26;
/// The length of the date in this format.
const DATE: usize = 11;

/// A parser for times of the common log format. The parser caches the last day, because consecutive
/// lines usually have the same day.
#[derive(Debug, Default)]
pub(crate) struct ClfClock {
    date: [u8; DATE],
    days: Option<u64>,
}

impl ClfClock {
    /// Parses `17/May/2015:10:05:03 +0000` to milliseconds since the epoch, or returns `None` if
    /// `text` is not such a time.
    pub(crate) fn parse(&mut self, text: &[u8]) -> Option<u64> {
        let text: &[u8; LENGTH] = text.try_into().ok()?;
        if text[11] != b':' || text[14] != b':' || text[17] != b':' || text[20] != b' ' {
            return None;
        }
        let second = second_of_day(two(&text[12..14])?, two(&text[15..17])?, two(&text[18..20])?)?;
        let offset = offset(text[21], two(&text[22..24])?, two(&text[24..26])?)?;
        millis(self.day(&text[..DATE])?, second, offset)
    }

    fn day(&mut self, date: &[u8]) -> Option<u64> {
        if self.days.is_none() || self.date != date {
            self.days = date_days(date);
            self.date.copy_from_slice(date);
        }
        self.days
    }
}

fn date_days(date: &[u8]) -> Option<u64> {
    if date[2] != b'/' || date[6] != b'/' {
        return None;
    }
    days(four(&date[7..])?, month(&date[3..6])?, two(&date[..2])?)
}

fn month(name: &[u8]) -> Option<u32> {
    const NAMES: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    (1..).zip(NAMES).find(|(_, known)| *known == name).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_reported_by_the_clock_of_their_zone() {
        let mut clock = ClfClock::default();
        assert_eq!(clock.parse(b"17/May/2015:10:05:03 +0000"), Some(1_431_857_103_000));
        assert_eq!(clock.parse(b"17/May/2015:12:05:03 +0200"), Some(1_431_857_103_000));
        assert_eq!(clock.parse(b"17/May/2015:04:35:03 -0530"), Some(1_431_857_103_000));
        assert_eq!(clock.parse(b"18/May/2015:00:00:00 +0000"), Some(1_431_907_200_000));
        assert_eq!(clock.parse(b"31/Dec/1969:23:00:00 -0100"), None);
        assert_eq!(clock.parse(b"01/Jan/1970:00:00:00 +0000"), Some(0));
    }

    #[test]
    fn what_is_no_time_is_refused_also_after_a_good_day() {
        let mut clock = ClfClock::default();
        for text in [
            "17/May/2015:10:05:03 +0000 ",
            "17/May/2015:10:05:03",
            "32/May/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:60:03 +0000",
            "17/May/2015:10:05:61 +0000",
            "17/May/2015:10:05:03 +0060",
            "17/May/2015:10:05:03 *0000",
            "17/May/2015 10:05:03 +0000",
            "01/Jan/1970:00:00:00 +0100",
            "",
        ] {
            assert_eq!(clock.parse(text.as_bytes()), None, "{text}");
            assert!(clock.parse(b"17/May/2015:10:05:03 +0000").is_some());
        }
    }
}
