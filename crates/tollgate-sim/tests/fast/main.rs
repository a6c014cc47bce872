//! Simulated worlds: the first seeds, seeds that found mistakes, and replays.

mod regressions;
mod replay;
mod worlds;
