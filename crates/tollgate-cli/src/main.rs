//! The `tollgate` binary.

mod simulate;

fn main() {}
