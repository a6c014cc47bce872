//! Matching a request against conditions on networks, queries and cookies allocates nothing.
//!
//! This is a separate test binary, because it bounds the allocations of the whole process.

use std::alloc::System;

use cap::Cap;
use tollgate_core::{Headers, RequestAttributes};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

struct Fields;

impl Headers for Fields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        match (name, index) {
            ("cookie", 0) => Some(b"a=1; group=beta"),
            ("user-agent", 0) => Some(b"curl/8.5.0"),
            _ => None,
        }
    }
}

const POLICY: &str = "
networks: { office: [10.0.0.0/8, 2001:db8::/32, 192.0.2.1] }
limits: { core: { quota: 5, window: 1h } }
rules:
  - match:
      network: office
      header: { user-agent: ['wget/*', 'curl/*'] }
      query: { q: 'a *', page: '2' }
      cookie: { group: [alpha, 'b*'] }
      any: [{ method: PUT }, { query: q }]
      not: [{ network: 10.2.0.0/16 }, { path: /a/* }]
    limits: core
";

#[test]
fn a_request_is_matched_without_an_allocation() {
    let policy = tollgate_policy::parse("shop.yaml", POLICY).unwrap().policy;
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: Some("page=2&x&q=a%20b+c"),
        host: None,
        peer: "10.1.2.3".parse().ok(),
        headers: &Fields,
    };
    // With this limit, an allocation fails and ends the process.
    ALLOCATED.set_limit(ALLOCATED.allocated()).unwrap();
    let unmet = policy.first_mismatch(&policy.rules()[0], &attributes);
    ALLOCATED.set_limit(usize::MAX).unwrap();
    assert_eq!(unmet, None);
}
