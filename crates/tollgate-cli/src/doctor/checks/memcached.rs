//! Checks the statistics of a memcached server.

use std::collections::BTreeMap;

use super::{Finding, Level};

pub(in crate::doctor) fn of_memcached(
    server: &str,
    report: Result<&BTreeMap<String, String>, &String>,
) -> Vec<Finding> {
    let findings = match report {
        Err(reason) => vec![Finding::of(
            "reach",
            Level::Problem,
            reason.clone(),
            "check that it runs and that this machine can reach it",
        )],
        Ok(stats) => {
            let version = stats.get("version").map_or("of an unknown version", String::as_str);
            vec![Finding::ok("version", format!("memcached {version}")), evictions(stats)]
        }
    };
    let about = format!("memcached {server}");
    findings.into_iter().map(|finding| finding.about(&about)).collect()
}

fn evictions(stats: &BTreeMap<String, String>) -> Finding {
    const CHECK: &str = "eviction";
    let number = |name: &str| stats.get(name).and_then(|value| value.parse::<u64>().ok());
    match number("evictions").unwrap_or(0) {
        0 => Finding::ok(CHECK, "no evictions"),
        evicted => Finding::of(
            CHECK,
            Level::Problem,
            format!("{evicted} items were evicted; counters among them started from zero"),
            "increase its memory (-m), or use a separate server",
        ),
    }
}
