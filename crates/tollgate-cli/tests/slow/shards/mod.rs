//! Shards that come and go under processes that serve, and what `tollgate shards` tells of them.

mod access;
mod command;
mod disagree;
mod doctor;
mod fleet;
mod followed;
mod frozen;
mod looks;
mod moving;
mod old_node;
