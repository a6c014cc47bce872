//! The core seen from outside: laws of every algorithm, matching, paths, addresses, and mistakes that were made once.

mod addresses;
mod descriptors;
mod laws;
mod matching;
mod named;
mod paths;
mod regressions;
