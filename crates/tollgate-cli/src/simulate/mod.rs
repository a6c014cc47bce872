//! `tollgate simulate`: a policy tried on the requests of an access log, by the log's own clock.

#[allow(dead_code, unused_imports, reason = "the command that reads logs follows")]
pub(crate) mod log;
