//! Tests that units that the fallback admitted are charged with the quota of their subject.

use tollgate::model::algo::TokenBucket;
use tollgate::model::{Admission, Algorithm, Limit, Millis};
use tollgate_stores::fallback::LocalChargeCounts;

use crate::local_charges::{NOTHING, fails, node, one, recovers};
use crate::setup::{NOW, WINDOW, apply_one, at_once, fixed, refund, take, user};

/// Returns the same limit with a quota, or a burst, of 100 and of 5,000 units.
fn two_plans(limit: &Limit) -> [Limit; 2] {
    [100, 5_000].map(|quota| limit.with_quota(quota, None).unwrap())
}

fn bucket() -> Limit {
    let bucket = TokenBucket::new(20, WINDOW, 20).unwrap();
    Limit::new("bucket", Algorithm::TokenBucket(bucket)).unwrap()
}

/// The bug: the units of all subjects were charged with the quota of the subject that was recorded
/// last. The store refused units that fit a larger quota, and did not count units in a larger bucket.
#[test]
fn units_were_charged_with_the_quota_of_another_subject() {
    for limit in [fixed("core", 20), bucket()] {
        let [free, pro] = two_plans(&limit);
        for (limit, units, other) in [(&free, 50, &pro), (&pro, 2_500, &free)] {
            let node = node(2);
            fails(&node);
            assert_eq!(one(&node, limit, &user(1), take(units, 1)).admission, Admission::Now);
            one(&node, other, &user(2), take(1, 2));
            recovers(&node);
            assert_eq!(one(&node, limit, &user(1), take(1, 3)).used, units + 1, "{limit:?}");
            assert_eq!(node.local_charges(), LocalChargeCounts { charged: units, ..NOTHING });
        }
    }
}

/// The bug: units that one subject used with two quotas were charged with the later quota.
#[test]
fn units_under_two_quotas_were_charged_with_the_one_that_counts_fewer() {
    let (node, subject, [free, pro]) = (node(2), user(1), two_plans(&fixed("core", 20)));
    one(node.store(), &pro, &subject, take(2_000, 1));
    fails(&node);
    one(&node, &pro, &subject, take(10, 2));
    one(&node, &free, &subject, take(10, 3));
    recovers(&node);
    assert_eq!(one(&node, &free, &subject, take(1, 4)).used, 2_020);

    let (node, [free, pro]) = (crate::local_charges::node(2), two_plans(&bucket()));
    fails(&node);
    one(&node, &free, &subject, take(40, 1));
    one(&node, &pro, &subject, take(1, 2));
    recovers(&node);
    assert_eq!(one(&node, &pro, &subject, take(0, 3)).used, 5_000 - 59);
}

/// The bug: units under a larger burst were charged with the smaller burst of another plan of the
/// subject, under which the bucket was full again.
#[test]
fn units_under_a_larger_burst_were_lost_when_a_smaller_bucket_was_full_again() {
    let (node, subject, [free, pro]) = (node(1), user(1), two_plans(&bucket()));
    let later = NOW.after(Millis::from_secs(2));
    fails(&node);
    at_once(apply_one(&node, NOW, &free, &subject, take(1, 1))).unwrap();
    let reading = at_once(apply_one(&node, later, &pro, &subject, take(150, 2))).unwrap();
    assert_eq!(reading.admission, Admission::Now);
    recovers(&node);
    at_once(apply_one(&node, later, &pro, &subject, take(0, 3))).unwrap();
    let counts = LocalChargeCounts { charged: 150, ..NOTHING };
    assert_eq!(node.local_charges(), counts);
}

/// A receipt is settled with the burst of the moment, which an override may have changed.
#[test]
fn a_refund_under_another_burst_lowers_the_units_of_a_subject() {
    let (node, subject, [free, pro]) = (node(1), user(1), two_plans(&bucket()));
    fails(&node);
    let here = one(&node, &free, &subject, take(40, 1));
    assert_eq!(one(&node, &pro, &subject, refund(30, 1, here.position)).refunded, 30);
    recovers(&node);
    one(&node, &free, &subject, take(0, 2));
    assert_eq!(node.local_charges(), LocalChargeCounts { charged: 10, ..NOTHING });
}
