//! Tests of simulated worlds: the first seeds, seeds that once failed, and replays.

mod page;
mod regressions;
mod replay;
mod worlds;
