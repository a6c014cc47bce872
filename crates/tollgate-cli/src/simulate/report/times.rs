//! Describes the times of refusals in words.

use super::super::tally::Episode;
use super::super::utc::{DAY, Utc};
use super::number::Count;

/// Describes an episode of refusals, such as `18 May 22:05:12 to 22:06:01 (4)`.
pub(super) fn episode(episode: &Episode) -> String {
    let (from, to) = (Utc::new(episode.from), Utc::new(episode.to));
    let start = format!("{} {}", from.short_date(), from.clock_with_seconds());
    if episode.count == 1 {
        return start;
    }
    let end = match (episode.from == episode.to, episode.from / DAY == episode.to / DAY) {
        (true, _) => String::new(),
        (false, true) => format!(" to {}", to.clock_with_seconds()),
        (false, false) => format!(" to {} {}", to.short_date(), to.clock_with_seconds()),
    };
    format!("{start}{end} ({})", Count(episode.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_are_short_to_read() {
        let text = |from, to, count| episode(&Episode { from, to, count });
        let noon = 1_431_864_000_000;
        assert_eq!(text(noon, noon, 1), "17 May 12:00:00");
        assert_eq!(text(noon, noon, 3), "17 May 12:00:00 (3)");
        assert_eq!(text(noon, noon + 61_000, 1_500), "17 May 12:00:00 to 12:01:01 (1,500)");
        assert_eq!(text(noon, noon + DAY, 2), "17 May 12:00:00 to 18 May 12:00:00 (2)");
    }
}
