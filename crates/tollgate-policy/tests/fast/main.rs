//! Tests of policy files: their meaning, every mistake with its message, the schema, and imports.

mod billing_days;
mod coming_from;
mod conditions;
mod descriptors;
mod expressions;
mod format;
mod hostile;
mod import;
mod include;
mod jwt;
mod meaning;
mod memcached;
mod migration;
mod mistakes;
mod networks;
mod policies;
mod quotas;
mod redis;
mod request_fields;
mod schema;
mod tenants;
