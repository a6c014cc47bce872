//! The follower of a JSON pointer in a response that arrives in pieces, beside `serde_json`.

#[path = "../../crates/tollgate/src/tower/meter/follower.rs"]
#[allow(dead_code, unreachable_pub)]
mod follower;

use follower::{Follower, Found};
use serde_json::Value;
use tollgate_core::policy::JsonPointer;

const POINTERS: [&str; 4] = ["/a", "/usage/total", "/a/0/b", ""];

/// A document gives the same values however it is split, and they include the value that a parser
/// of whole documents finds.
pub fn check(data: &[u8]) {
    let Some((document, place)) = crate::cut(data) else { return };
    let whole = serde_json::from_slice::<Value>(document).ok();
    for text in POINTERS {
        let Ok(pointer) = JsonPointer::parse(text) else { continue };
        let (first, rest) = document.split_at(place);
        let values = found(&pointer, &[document]);
        assert_eq!(found(&pointer, &[first, rest]), values, "{text} split at {place}");
        let expected = match whole.as_ref().and_then(|whole| whole.pointer(text)) {
            Some(Value::String(text)) if text.len() <= 64 => text.clone(),
            Some(Value::Number(number)) if number.is_u64() => number.to_string(),
            _ => continue,
        };
        assert!(values.contains(&expected), "{text}: {values:?} without {expected:?}");
    }
}

fn found(pointer: &JsonPointer, pieces: &[&[u8]]) -> Vec<String> {
    let mut follower = Follower::default();
    let mut found = Vec::new();
    for piece in pieces {
        follower.push(pointer.steps(), piece, &mut |value| {
            if let Found::Text(text) | Found::Number(text) = value {
                found.push(text.to_owned());
            }
        });
    }
    found
}
