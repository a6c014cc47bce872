//! Axes of charts: round numbers on the vertical axis, times on the horizontal axis.

use super::super::super::utc::{DAY, HOUR, Utc};

/// Returns the marks of an axis from 0 to at least `most`: round numbers at equal distances, at
/// most `count` above 0. The last mark is at least `most`.
pub(super) fn round_marks(most: u64, count: u64) -> Vec<u64> {
    let rough = most.div_ceil(count.max(1)).max(1);
    let magnitude = 10_u64.saturating_pow(rough.ilog10());
    let step = [1, 2, 5, 10].map(|factor| magnitude.saturating_mul(factor));
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    (0..=most.max(1).div_ceil(step)).map(|n| n.saturating_mul(step)).collect()
}

/// Returns at most `count` times to mark between `from` and `to`, at full hours or days. Each time
/// has its label.
pub(super) fn time_marks(from: u64, to: u64, count: u64) -> Vec<(u64, String)> {
    const STEPS: [u64; 14] = [
        1_000,
        10_000,
        60_000,
        5 * 60_000,
        15 * 60_000,
        HOUR,
        3 * HOUR,
        6 * HOUR,
        12 * HOUR,
        DAY,
        2 * DAY,
        7 * DAY,
        28 * DAY,
        364 * DAY,
    ];
    let rough = to.saturating_sub(from) / count.max(1);
    let step = STEPS.into_iter().find(|step| *step > rough).unwrap_or_else(|| rough.max(1));
    let first = from.div_ceil(step) * step;
    (0..=count)
        .map(|n| first + n * step)
        .take_while(|time| *time <= to)
        .map(|time| (time, label(time, step)))
        .collect()
}

fn label(time: u64, step: u64) -> String {
    let moment = Utc::new(time);
    match step {
        0..60_000 => moment.clock_with_seconds(),
        60_000..DAY if time.is_multiple_of(DAY) => moment.short_date(),
        60_000..DAY => moment.clock(),
        DAY.. if step < 364 * DAY => moment.short_date(),
        _ => moment.year.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_reach_the_top() {
        assert_eq!(round_marks(0, 4), [0, 1]);
        assert_eq!(round_marks(3, 4), [0, 1, 2, 3]);
        assert_eq!(round_marks(173, 4), [0, 50, 100, 150, 200]);
        assert_eq!(round_marks(4_000, 4), [0, 1000, 2000, 3000, 4000]);
        for most in (0..5_000).chain([u64::MAX / 2]) {
            let marks = round_marks(most, 4);
            assert!(marks.len() <= 5 && marks[marks.len() - 1] >= most, "{most}: {marks:?}");
        }
    }

    #[test]
    fn moments_are_round_too() {
        let day = 1_431_820_800_000;
        let labels = |from, to| {
            time_marks(from, to, 6).into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        let expected = ["12:00", "18 May", "12:00", "19 May", "12:00", "20 May"];
        assert_eq!(labels(day + HOUR, day + 3 * DAY), expected);
        assert_eq!(
            labels(day, day + 5 * HOUR),
            ["17 May", "01:00", "02:00", "03:00", "04:00", "05:00"]
        );
        assert_eq!(labels(0, 0), ["00:00:00"]);
        assert!(labels(0, (1 << 53) - 1).len() <= 7);
    }
}
