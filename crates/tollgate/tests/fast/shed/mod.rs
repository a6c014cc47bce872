//! Load shedding: the rules of its parts, and a node at three times its capacity.

mod adaptive;
mod fleet;
mod level;
mod plant;
mod worker;
