//! Sparklines: a row of numbers as a row of bars.

/// Returns one bar per number, or per group of numbers if there are more than `columns`.
pub(super) fn sparkline(values: &[u64], columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = values.len().div_ceil(columns.max(1)).max(1);
    let sums: Vec<u128> =
        values.chunks(each).map(|few| few.iter().map(|value| u128::from(*value)).sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    sums.iter()
        .map(|sum| match sum {
            0 => ' ',
            // Every value above zero has a visible bar.
            sum => BARS[usize::try_from((sum * 8).div_ceil(most).max(1) - 1).unwrap_or(0).min(7)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_numbers() {
        assert_eq!(sparkline(&[0, 1, 50, 100], 9), " ▁▄█");
        assert_eq!(sparkline(&[1, 1, 2, 2, 4, 4], 3), "▂▄█");
        assert_eq!(sparkline(&[], 3), "");
        assert_eq!(sparkline(&[u64::MAX; 1000], 10).chars().count(), 10);
    }
}
