//! Envoy's messages in JSON, as far as they are told: the protocol's own files say it all.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::grpc::{MAX_DESCRIPTORS, MAX_ENTRIES};

/// `RateLimitRequest`. Its numbers may be written as text, and its names as the protocol's files
/// write them: so nothing is said here of types that have several forms.
pub(super) fn request(_: &mut SchemaGenerator) -> Schema {
    let entry = json_schema!({
        "type": "object",
        "required": ["key"],
        "properties": { "key": { "type": "string", "minLength": 1 }, "value": { "type": "string" } },
    });
    json_schema!({
        "type": "object",
        "required": ["domain", "descriptors"],
        "properties": {
            "domain": { "type": "string", "minLength": 1 },
            "descriptors": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_DESCRIPTORS,
                "items": {
                    "type": "object",
                    "required": ["entries"],
                    "properties": {
                        "entries": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": MAX_ENTRIES,
                            "items": entry,
                        },
                        "hitsAddend": { "description": "Units; 0 asks without charging." },
                    },
                },
            },
            "hitsAddend": { "description": "Units of each descriptor that says none; 1 by default." },
        },
    })
}

/// `RateLimitResponse`.
pub(super) fn response(_: &mut SchemaGenerator) -> Schema {
    let code = || json_schema!({ "type": "string", "enum": ["OK", "OVER_LIMIT"] });
    json_schema!({
        "type": "object",
        "required": ["overallCode"],
        "properties": {
            "overallCode": code(),
            "statuses": {
                "type": "array",
                "items": { "type": "object", "properties": { "code": code() } },
            },
        },
    })
}
