//! Strict JSON: unexpected input is refused with its location.
//!
//! `serde_json` reads valid documents. For invalid documents, the two deserializers of this folder,
//! 180 lines, find the location of the mistake. `serde_path_to_error` finds the location too, but
//! returns the messages of `serde_json`. For the six mistakes in the test below, the message about
//! an unknown name would lose its suggestion, and all six messages would end with a line and a
//! column, which are useless for a document of one line.

mod fault;
mod located;
mod object;
mod text;
mod tree;

use axum::body::Bytes;
use serde::Serialize;
use serde::de::Deserialize;

pub(super) use fault::{Fault, FaultKind};
use located::Located;
pub(super) use object::Object;
use text::Text;
use tree::Tree;

/// Reads `bytes` as a `T`. A `T` is an object and may borrow from `bytes`. Unknown names, repeated
/// names and numbers that are not integers are refused if `T` refuses them.
///
/// # Errors
/// [`Fault`] with the error, its location, and a suggestion for a similar name.
pub(super) fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Fault> {
    // UTF-8 is validated once for the whole document, instead of for each name and value.
    let read = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    let error = match read {
        Ok(Object(value)) => return Ok(value),
        Err(error) => error,
    };
    // Parse again with the slower deserializer that tracks the location.
    let tree: Tree = serde_json::from_slice(bytes).map_err(|error| Fault::syntax(&error))?;
    match Object::<T>::deserialize(Located(&tree)) {
        Err(fault) => Err(fault),
        Ok(_) => Err(Fault::syntax(&error)),
    }
}

/// The usual size of a response, in bytes: a decision on one or two limits with its receipt. A buffer
/// of this size never has to grow.
pub(super) const USUAL_BYTES: usize = 1024;

/// Returns `document` as JSON.
///
/// # Errors
/// Fails if `document` cannot be expressed in JSON, for example because a map has keys that are not
/// strings.
pub(super) fn write(document: &impl Serialize) -> serde_json::Result<Bytes> {
    let mut written = Vec::with_capacity(USUAL_BYTES);
    write_to(&mut written, document)?;
    Ok(written.into())
}

/// Appends `document` as JSON to `out`.
///
/// # Errors
/// The same errors as [`write()`].
pub(super) fn write_to(out: &mut Vec<u8>, document: &impl Serialize) -> serde_json::Result<()> {
    document.serialize(Text(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::wire::CheckRequest;

    fn fault(text: &str) -> (String, String) {
        let Err(fault) = read::<CheckRequest<'_>>(text.as_bytes()) else {
            panic!("{text} was read")
        };
        (fault.pointer().to_owned(), fault.to_string())
    }

    #[test]
    fn the_place_and_the_nearest_name_are_reported() {
        let (pointer, message) = fault(r#"{"limits":[{"name":"a"},{"name":"b","costs":1}]}"#);
        assert_eq!(pointer, "/limits/1");
        assert!(message.contains("unknown name \"costs\"; did you mean \"cost\"?"), "{message}");
        let (pointer, message) = fault(r#"{"limits":[{"name":"a","cost":-1}]}"#);
        assert_eq!(pointer, "/limits/0/cost");
        assert!(message.contains("-1") && message.contains("whole number"), "{message}");
        let (pointer, message) = fault(r#"{"limits":[{"name":"a","subject":{"t":"1","t":"2"}}]}"#);
        assert_eq!(pointer, "/limits/0/subject");
        assert!(message.contains("\"t\" is given twice"), "{message}");
        let (pointer, message) = fault(r#"{"limits":[{"cost":1}]}"#);
        assert_eq!((&*pointer, &*message), ("/limits/0", "\"name\" is missing"));
        let (pointer, _) = fault(r#"{"limits":[{"name":"a","subject":{"a~/b":1}}]}"#);
        assert_eq!(pointer, "/limits/0/subject/a~0~1b");
        let (pointer, message) = fault("{]");
        assert!(pointer.is_empty() && message.contains("line 1 column 2"), "{message}");
    }
}
