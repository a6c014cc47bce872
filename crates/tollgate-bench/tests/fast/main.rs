//! The benchmarks' own parts, on what needs no other program.

mod doors;
mod pages;
