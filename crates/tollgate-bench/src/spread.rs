//! The summary of several rounds: the median and the range.

use std::fmt;

/// The median, the minimum and the maximum of some measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The minimum.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The maximum.
    pub greatest: f64,
}

impl Spread {
    /// Returns the median, the minimum and the maximum of `values`. All three are zero if there are
    /// no values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        Self {
            least: at(0),
            median: at(values.len() / 2),
            greatest: at(values.len().saturating_sub(1)),
        }
    }
}

impl fmt::Display for Spread {
    /// Formats the summary as `12.3 (11.9–14.0)`: the median, the minimum and the maximum. The
    /// precision of the format is the number of decimal places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let Self { least, median, greatest } = self;
        write!(f, "{median:.digits$} ({least:.digits$}–{greatest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_between_the_least_and_the_greatest() {
        let spread = Spread::of([9.0, 2.0, 5.0]);
        assert_eq!(spread, Spread { least: 2.0, median: 5.0, greatest: 9.0 });
        assert_eq!(format!("{spread:.2}"), "5.00 (2.00–9.00)");
        assert_eq!(Spread::of([]), Spread::default());
    }
}
