//! Checks for versions with a known vulnerability. Through the vulnerability, a user with the
//! permission to run scripts can leave the sandbox.

use tollgate_backend::Info;

use super::{Finding, Level};

const CHECK: &str = "version";

/// The vulnerability for which the tables `REDIS` and `VALKEY` list the fixed versions. It is in
/// the Lua engine of all earlier versions. A user that is allowed to load scripts can run arbitrary
/// code through this vulnerability.
const VULNERABILITY: &str = "CVE-2025-49844";

/// The first fixed version of each release line of Redis, and in `VALKEY` of each release line of
/// Valkey, according to the projects' release notes.
const REDIS: [[u32; 3]; 5] = [[6, 2, 20], [7, 2, 11], [7, 4, 6], [8, 0, 4], [8, 2, 2]];
const VALKEY: [[u32; 3]; 4] = [[7, 2, 11], [8, 0, 6], [8, 1, 4], [9, 0, 0]];

/// The oldest version that Tollgate is tested with.
const OLDEST: [u32; 3] = [6, 2, 0];

pub(super) fn check(info: &Info) -> Option<Finding> {
    let (name, text, closed) = match info.field("valkey_version") {
        Some(version) => ("Valkey", version, VALKEY.as_slice()),
        None => ("Redis", info.field("redis_version")?, REDIS.as_slice()),
    };
    let version = parse(text)?;
    if version < OLDEST {
        return Some(Finding::of(
            CHECK,
            Level::Problem,
            format!("{name} {text} is older than all versions that Tollgate is tested with"),
            "update it to Redis 6.2.20 or later, or to Valkey",
        ));
    }
    if is_closed(version, closed) {
        return Some(Finding::ok(CHECK, format!("{name} {text}")));
    }
    Some(Finding::of(
        CHECK,
        Level::Warning,
        format!(
            "{name} {text} has the vulnerability {VULNERABILITY}: a user that may load scripts can take over the server"
        ),
        format!("update it to {}", next(version, closed)),
    ))
}

fn parse(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.split('.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse().ok()
    });
    Some([numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)])
}

/// Returns whether `version` is at least the first fixed version of its release line in the table
/// `closed`. A release line that is not in the table never received the fix, unless it is newer
/// than all release lines in the table.
fn is_closed(version: [u32; 3], closed: &[[u32; 3]]) -> bool {
    match closed.iter().find(|first| first[..2] == version[..2]) {
        Some(first) => version >= *first,
        None => closed.last().is_some_and(|last| version >= *last),
    }
}

/// Returns the earliest version in the table `closed` that is later than `version`, as a text.
fn next(version: [u32; 3], closed: &[[u32; 3]]) -> String {
    let first = closed.iter().find(|first| **first > version).unwrap_or(&OLDEST);
    format!("{}.{}.{} or later", first[0], first[1], first[2])
}
