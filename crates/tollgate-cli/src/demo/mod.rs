//! The parts of the demo: a small service, a client that replays a log, and the clock of the demo.

pub(crate) mod clock;
pub(crate) mod model;
pub(crate) mod replay;
pub(crate) mod stream;
pub(crate) mod upstream;
