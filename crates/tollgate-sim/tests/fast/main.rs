//! Simulated worlds: the first seeds, seeds that found mistakes, and replays.

mod page;
mod regressions;
mod replay;
mod worlds;
