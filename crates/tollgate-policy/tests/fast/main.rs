//! Policy files as they are written: what they mean, every mistake and its message, the schema, imports.

mod coming_from;
mod descriptors;
mod hostile;
mod import;
mod meaning;
mod memcached;
mod migration;
mod mistakes;
mod policies;
mod redis;
mod schema;
