//! One program with all fuzz targets. The variable `FUZZ_TARGET` chooses one; `fuzz/run` sets it.
//!
//! A target is a function of some bytes that panics if a property does not hold. The parsers are
//! included from the source files of the shipped crates, so those need no entries for fuzzing.

#![no_main]
#![allow(dead_code, reason = "a target uses a part of the files that it includes")]

mod access_log;
mod address;
mod cell;
mod event_stream;
mod forwarded;
mod http_framing;
mod json_body;
mod memcached_reply;
mod module_step;
mod module_table;
mod path;
mod policy;
mod rate_limit_request;
mod receipt;
mod resp;
mod step_command;
mod step_reply;
mod tower;

// The parts of the server module that need no server.
#[path = "../../crates/tollgate-module/src/answer.rs"]
mod answer;
#[path = "../../crates/tollgate-module/src/buffers.rs"]
mod buffers;
#[path = "../../crates/tollgate-module/src/charges.rs"]
mod charges;
#[path = "../../crates/tollgate-module/src/error.rs"]
mod error;
#[path = "../../crates/tollgate-module/src/location_state.rs"]
mod location_state;
#[path = "../../crates/tollgate-module/src/reader.rs"]
mod reader;
#[path = "../../crates/tollgate-module/src/request.rs"]
mod request;
#[path = "../../crates/tollgate-module/src/rule.rs"]
mod rule;
#[path = "../../crates/tollgate-module/src/slot.rs"]
mod slot;
#[path = "../../crates/tollgate-module/src/step.rs"]
mod step;
#[path = "../../crates/tollgate-module/src/stored.rs"]
mod stored;
#[path = "../../crates/tollgate-module/src/table.rs"]
mod table;
#[path = "../../crates/tollgate-module/src/transfer.rs"]
mod transfer;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

/// Every target with its name.
const TARGETS: &[(&str, Target)] = &[
    ("access_log", access_log::check),
    ("address", address::check),
    ("cell", cell::check),
    ("event_stream", event_stream::check),
    ("forwarded", forwarded::check),
    ("http_framing", http_framing::check),
    ("json_body", json_body::check),
    ("memcached_reply", memcached_reply::check),
    ("metered_body", tower::check),
    ("module_step", module_step::check),
    ("module_table", module_table::check),
    ("path", path::check),
    ("policy", policy::check),
    ("rate_limit_request", rate_limit_request::check),
    ("receipt", receipt::check),
    ("resp", resp::check),
    ("step_command", step_command::check),
    ("step_reply", step_reply::check),
];

/// The targets without comparison tracing. These targets take half the time without it, and it does
/// not help them: an input of `policy` is text, which libFuzzer learns from `memcmp`, and every
/// input of `step_command` is valid.
const UNTRACED: &[&str] = &["policy", "step_command"];

unsafe extern "C" {
    /// The variable that instrumented code reads before it passes the operands of a comparison to
    /// libFuzzer, which tries the operands in inputs. The compiler's coverage pass defines the
    /// variable. The initial value 0 disables comparison tracing.
    #[link_name = "__sancov_should_track"]
    static mut TRACES_COMPARISONS: u64;
}

fuzz_target!(|data: &[u8]| chosen()(data));

fn chosen() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let is_traced = UNTRACED.iter().all(|untraced| *untraced != name);
        // SAFETY: the program has one thread here, and instrumented code only reads the variable.
        unsafe { TRACES_COMPARISONS = u64::from(is_traced) };
        let target = TARGETS.iter().find(|(known, _)| *known == name);
        target
            .unwrap_or_else(|| panic!("FUZZ_TARGET is {name:?}; it must be the name of a target"))
            .1
    })
}

/// Splits `data` at a place that its first two bytes choose. Returns the rest, and the place in it.
fn cut(data: &[u8]) -> Option<(&[u8], usize)> {
    let (place, rest) = data.split_first_chunk::<2>()?;
    Some((rest, usize::from(u16::from_le_bytes(*place)) % (rest.len() + 1)))
}
