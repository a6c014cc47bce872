//! Makes Rust of Envoy's protocol, without a compiler of protocol buffers on the machine.

use std::path::Path;
use std::{env, error, fs};

use prost::Message;

const ROOT: &str = "proto";
const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo::rerun-if-changed={ROOT}");
    let files = protox::compile([SERVICE], [ROOT])?;
    let out = env::var("OUT_DIR")?;
    // For reflection, and for the same messages in JSON.
    fs::write(Path::new(&out).join("descriptors.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().build_client(true).build_transport(false).compile_fds(files)?;
    Ok(())
}
