//! Receipts of charges and reservations, which clients send back.

use std::sync::LazyLock;

use tollgate_core::Policy;

const FILE: &str = "
subjects: { user: { header: x-user } }
limits:
  fixed: { quota: 5, window: 10s, per: user }
  sliding: { quota: 5, window: 10s, per: user, algorithm: sliding_window }
  bucket: { quota: 5, window: 10s, per: user, algorithm: token_bucket }
  open: { quota: 5, per: user, algorithm: concurrency }
rules:
  - { name: all, limits: [fixed, sliding, bucket, open] }
";

static POLICY: LazyLock<Policy> =
    LazyLock::new(|| tollgate_policy::parse("fuzz.yaml", FILE).expect("a valid policy").policy);

/// A text is valid only if a node wrote it, and a receipt that is written again is the same.
pub fn check(data: &[u8]) {
    tollgate::fuzzing::receipt(data, &POLICY);
}
