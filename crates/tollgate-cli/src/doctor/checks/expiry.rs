//! Checks for keys that never expire.

use tollgate_backend::{Info, part};

use super::{Finding, Level};

const CHECK: &str = "expiry";

pub(super) fn check(info: &Info) -> Option<Finding> {
    let (mut keys, mut expiring) = (0_u64, 0_u64);
    for (_, value) in info.fields("db").filter(|(name, _)| is_database(name)) {
        let number = |name| part(value, name).and_then(|text| text.parse::<u64>().ok());
        keys = keys.saturating_add(number("keys")?);
        expiring = expiring.saturating_add(number("expires")?);
    }
    let forever = keys.saturating_sub(expiring);
    if forever == 0 {
        return Some(Finding::ok(CHECK, format!("all {keys} keys expire")));
    }
    // Every key of Tollgate has an expiry from its first write on.
    Some(Finding::of(
        CHECK,
        Level::Advice,
        format!("{forever} of {keys} keys never expire; they are not Tollgate's"),
        "use a separate server for Tollgate: foreign keys and load affect its decisions",
    ))
}

fn is_database(name: &str) -> bool {
    name.strip_prefix("db").is_some_and(|number| number.parse::<u32>().is_ok())
}
