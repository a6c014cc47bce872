//! Generates Rust code for Envoy's protocol, without the `protoc` compiler.

use std::path::Path;
use std::{env, error, fs};

use prost::Message;
use prost_types::field_descriptor_proto::Type;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

const DESCRIPTORS: &str = "envoy.extensions.common.ratelimit.v3";
const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";

fn main() -> Result<(), Box<dyn error::Error>> {
    generate("proto")
}

/// Generates the code of the messages and services from the files in the directory `root`.
pub(crate) fn generate(root: &str) -> Result<(), Box<dyn error::Error>> {
    println!("cargo::rerun-if-changed={root}");
    let files = protox::compile([SERVICE], [root])?;
    let out = env::var("OUT_DIR")?;
    // The reflection service and the JSON form of the messages need this file.
    fs::write(Path::new(&out).join("descriptors.bin"), files.encode_to_vec())?;
    let files = with_values_of_any_bytes(files);
    tonic_prost_build::configure().build_client(true).build_transport(false).compile_fds(files)?;
    Ok(())
}

/// Changes the type of the values in descriptor entries from text to `bytes`, which has the same
/// wire format. Envoy copies header fields of clients into these values, and such fields are not
/// always UTF-8.
fn with_values_of_any_bytes(mut files: FileDescriptorSet) -> FileDescriptorSet {
    let is_ours = |file: &&mut FileDescriptorProto| file.package() == DESCRIPTORS;
    let messages = files.file.iter_mut().filter(is_ours).flat_map(|file| &mut file.message_type);
    let nested = messages.flat_map(|message| &mut message.nested_type);
    for entry in nested.filter(|message| message.name() == "Entry") {
        for value in entry.field.iter_mut().filter(|field| field.name() == "value") {
            value.set_type(Type::Bytes);
        }
    }
    files
}
