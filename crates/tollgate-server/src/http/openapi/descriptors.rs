//! A partial JSON schema of the messages of Envoy's rate limit service. The complete definition is
//! in the files of the protocol.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::grpc::{MAX_DESCRIPTORS, MAX_ENTRIES};

/// Returns the schema of `RateLimitRequest`. Protocol buffers allow numbers as text and names in
/// two spellings, so members that have several forms are left out of this schema.
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
                        "hitsAddend": { "description": "Units; 0 reads the status without charging." },
                    },
                },
            },
            "hitsAddend": { "description": "Units of each descriptor without its own; 1 by default." },
        },
    })
}

/// Returns the schema of `RateLimitResponse`.
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
