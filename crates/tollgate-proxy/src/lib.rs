//! A reverse proxy that limits what passes through it.
