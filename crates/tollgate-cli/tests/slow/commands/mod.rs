//! Commands that many requests test: real processes, real sockets.

mod spellings;
