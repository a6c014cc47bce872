//! Generates the code of Envoy's messages with the build script of the server.

use std::error::Error;

#[path = "../crates/tollgate-server/build.rs"]
#[allow(dead_code, reason = "the function `main` is for the server")]
mod server;

fn main() -> Result<(), Box<dyn Error>> {
    server::generate("../crates/tollgate-server/proto")
}
