//! Formats a share of a whole.

/// Returns the share of `part` in `whole` in percent, rounded to one decimal place.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let whole = whole.max(1);
    let thousandths = (part * 1_000 + whole / 2) / whole;
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded() {
        let message = [(1, 3), (2, 3), (24_898, 100_000), (0, 7), (7, 7), (0, 0)];
        let message = message.map(|(part, whole)| percent(part, whole));
        assert_eq!(message, ["33.3 %", "66.7 %", "24.9 %", "0.0 %", "100.0 %", "0.0 %"]);
    }
}
