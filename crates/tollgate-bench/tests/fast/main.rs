//! The benchmarks' own parts, on what needs no other program.

mod listeners;
mod pages;
