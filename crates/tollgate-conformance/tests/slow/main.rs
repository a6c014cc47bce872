//! Tests of the guide as a built book.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p
//! tollgate-conformance --test slow`.

mod built_book;
