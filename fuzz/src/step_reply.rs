//! Replies of the step in Redis.

/// Every job gets one answer, whatever the server sends.
pub fn check(data: &[u8]) {
    tollgate_redis::fuzzing::reply(data);
}
