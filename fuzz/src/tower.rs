//! Bodies of responses that report their cost while they pass.

// The sources have the visibility of the module `tower`.
#[path = "../../crates/tollgate/src/tower/meter/events.rs"]
#[allow(unreachable_pub)]
mod events;
#[path = "../../crates/tollgate/src/tower/meter/follower.rs"]
#[allow(unreachable_pub)]
mod follower;
#[path = "../../crates/tollgate/src/tower/meter/integer.rs"]
#[allow(unreachable_pub)]
mod integer;
#[path = "../../crates/tollgate/src/tower/meter/watch.rs"]
#[allow(unreachable_pub)]
mod watch;

use std::num::NonZeroU64;
use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use tollgate_core::policy::metered::whole_number;
use tollgate_core::policy::{JsonPointer, Meter};
use tollgate_core::{Cost, Millis};

use watch::Watch;

const POINTERS: [&str; 3] = ["/usage/total", "/a", "/choices/0/n"];

/// The bytes of one unit of the meter of sizes.
const UNIT: u64 = 16;

/// The meter of sizes, then that of each pointer.
static METERS: LazyLock<Vec<Arc<Meter>>> = LazyLock::new(|| {
    let pointer = |text: &&str| JsonPointer::parse(text).expect("a pointer");
    let json = |text: &&str| Arc::new(Meter::Json { pointer: pointer(text) });
    let size = Arc::new(Meter::Size { bytes: NonZeroU64::new(UNIT).expect("not 0") });
    [size].into_iter().chain(POINTERS.iter().map(json)).collect()
});

/// The costs do not depend on how a body arrives, and include the numbers that a parser of whole
/// documents finds in the last event.
pub fn check(data: &[u8]) {
    let Some((&[form], rest)) = data.split_first_chunk::<1>() else { return };
    let Some((body, place)) = crate::cut(rest) else { return };
    let is_stream = form & 1 == 1;
    let (first, last) = body.split_at(place);
    let whole = costs(is_stream, &[body]);
    assert_eq!(costs(is_stream, &[first, last]), whole, "split at {place}");
    assert_eq!(whole[0], Some(Cost::up_to((body.len() as u64).div_ceil(UNIT))));
    let document = if is_stream { last_event(body) } else { Some(body.to_vec()) };
    let document = document.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    for (pointer, cost) in POINTERS.iter().zip(&whole[1..]) {
        let found = document.as_ref().and_then(|document| document.pointer(pointer)?.as_u64());
        if let Some(number) = found {
            assert_eq!(*cost, whole_number(number.to_string().as_bytes()), "{pointer}");
        }
    }
}

/// Returns the costs that the size of a body and each pointer report.
fn costs(is_stream: bool, pieces: &[&[u8]]) -> Vec<Option<Cost>> {
    let mut watch = Watch::new(METERS.iter());
    let kind = if is_stream { "text/event-stream; charset=utf-8" } else { "application/json" };
    watch.answered(&HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().expect("a value"))]));
    pieces.iter().for_each(|piece| watch.observe(piece));
    METERS.iter().map(|meter| watch.cost(meter, Millis::new(0))).collect()
}

/// Returns the data of the last event with data; `None` if it is not text.
fn last_event(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let text =
        text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let data = |event: &str| -> Option<String> {
        let lines = event.lines().filter_map(|line| match line.split_once(':') {
            Some(("data", value)) => Some(value.strip_prefix(' ').unwrap_or(value)),
            None if line == "data" => Some(""),
            _ => None,
        });
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    Some(text.split("\n\n").filter_map(data).last()?.into_bytes())
}
