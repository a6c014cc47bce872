//! Load shedding: the laws of its parts, and a node that is asked for three times what it can do.

mod adaptive;
mod fleet;
mod level;
mod plant;
mod worker;
