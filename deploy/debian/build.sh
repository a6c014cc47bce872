#!/usr/bin/env bash
# Builds the Debian package of this machine's architecture; its path is the last line on stdout.
# Needs cargo-deb (cargo install cargo-deb --locked), and libclang for the server module.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Packages of the same commit are identical, whenever they are built.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# Link-time optimization: 3 to 5 % fewer instructions per decision; the build takes half as long again.
export CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
cargo build --release --locked --package tollgate-cli >&2
cargo build --release --locked --package tollgate-module >&2
program=target/release/tollgate
rm -rf target/package
mkdir -p target/package/completions
"$program" man target/package/man
"$program" completions bash >target/package/completions/tollgate.bash
"$program" completions zsh >target/package/completions/_tollgate
"$program" completions fish >target/package/completions/tollgate.fish
cargo deb --no-build --locked --package tollgate-cli
