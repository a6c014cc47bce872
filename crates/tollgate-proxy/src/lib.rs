//! A reverse proxy that limits what passes through it.

#[allow(dead_code, reason = "the connection that reads through it comes next")]
mod framing;
