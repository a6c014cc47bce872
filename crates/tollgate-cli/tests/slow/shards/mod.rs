//! Shards that are added and removed while processes serve, and the output of `tollgate shards`
//! about them.

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
