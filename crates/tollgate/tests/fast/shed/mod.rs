//! Tests of load shedding: the rules of each component, and a node at three times its capacity.

mod adaptive;
mod fleet;
mod level;
mod plant;
mod worker;
