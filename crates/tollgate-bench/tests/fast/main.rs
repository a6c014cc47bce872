//! Tests of the parts of the benchmarks that need no external program.

mod listeners;
mod pages;
