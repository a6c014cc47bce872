//! The JSON schema of a policy file.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;

use crate::raw::PolicyFile;

/// Returns the JSON schema (draft 2020-12) of a policy file. The schema is generated from the same
/// declarations as the reader, and ends with a line end.
#[must_use]
pub fn schema() -> String {
    let schema = generator().into_root_schema_for::<PolicyFile>();
    // The alternate form of `Display` writes indented JSON.
    format!("{:#}\n", schema.to_value())
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}
