//! Compares the output that a page shows with the output of a command.

/// The character that represents any output on a page.
pub(crate) const ANYTHING: char = '…';

/// Returns the first part of `shown` that `printed` does not contain in this order.
pub(crate) fn missing(shown: &str, printed: &str) -> Option<String> {
    let (shown, printed) = (packed(shown), packed(printed));
    let mut rest = &*printed;
    for piece in known(&shown).split(ANYTHING) {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return Some(piece.to_owned()),
        }
    }
    None
}

/// Removes white space, because pages break lines differently, and fields with times.
fn packed(text: &str) -> String {
    let tells_time = |line: &&str| line.starts_with("date: ") || line.starts_with("Date: ");
    let lines = text.lines().filter(|line| !tells_time(line));
    lines.flat_map(str::split_whitespace).collect()
}

/// Returns `shown` with [`ANYTHING`] in place of times and of numbers of seconds until a time.
fn known(shown: &str) -> String {
    /// The number of digits of a time in seconds since 1970.
    const MOMENT: usize = 10;
    const WAITS: [&str; 3] = [";t=", "retry-after:", "tryagainin"];
    let mut known = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (text, number) = rest.split_at(at);
        let length = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (digits, after) = number.split_at(length);
        known.push_str(text);
        let waits = WAITS.iter().any(|wait| known.to_ascii_lowercase().ends_with(wait));
        if waits || length >= MOMENT {
            known.push(ANYTHING);
        } else {
            known.push_str(digits);
        }
        rest = after;
    }
    known + rest
}

#[test]
fn what_is_shown_is_distinguished_from_what_is_printed() {
    let shown = "{\"a\":1,\n\"reset\":1795246246,…\"t\":\"x;t=3600\"}";
    assert_eq!(missing(shown, "{\"a\":1,\"reset\":1800000000,\"b\":2,\"t\":\"x;t=3599\"}"), None);
    assert!(missing(shown, "{\"a\":2,\"reset\":1800000000,\"b\":2,\"t\":\"x;t=3599\"}").is_some());
}
