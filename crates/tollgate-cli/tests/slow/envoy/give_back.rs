//! Refunds after the service has responded.

use crate::envoy::site::{Changes, Site};

/// The name of Envoy's counter of calls that were answered.
const CALLS: &str = "cluster.tollgate.upstream_rq_completed";

const KEY: &str = "x-api-key: one";

/// Replacements in the policy, with windows that do not end during the test. The quota for reports
/// is smaller.
const WINDOWS: Changes<'static> = &[
    ("quota: 600, window: 1m, anchor: calendar", "quota: 600000, window: 1d"),
    (
        "{ algorithm: sliding_window, quota: 20, window: 1m, precision: 1s }",
        "{ quota: 20, window: 1d }",
    ),
];

#[test]
fn as_much_is_refunded_as_the_service_says() {
    let site = Site::start(WINDOWS, &[]);
    let used = |fields: &[&str]| {
        let answer = site.envoy.get("/reports", fields);
        (answer.status, answer.field("x-ratelimit-used").to_owned())
    };
    // Each request refunds its charge at its end. Envoy does not wait for the refund.
    let free = [KEY, "x-please-give-back: 1"];
    for number in 0..30 {
        assert_eq!(used(&free), (200, "1".to_owned()), "{number}");
        site.envoy.counts(CALLS, 2 * (number + 1));
    }
    // Without the field nothing is refunded, and no call is made.
    assert_eq!(used(&[KEY]), (200, "1".to_owned()));
    assert_eq!(used(&[KEY]), (200, "2".to_owned()));
    assert_eq!(site.envoy.counted(CALLS), 62);
    // A refund of more than the charge sets the counter to zero, without a credit.
    assert_eq!(used(&[KEY, "x-please-give-back: 1000"]), (200, "3".to_owned()));
    site.envoy.counts(CALLS, 64);
    assert_eq!(used(&[KEY]), (200, "1".to_owned()));
}
