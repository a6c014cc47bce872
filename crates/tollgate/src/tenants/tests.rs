//! Compares the table of tenants with a plain map, and checks its bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::algo::{Anchor, FixedWindow, TokenBucket};
use tollgate_core::policy::{QuotasByValue, TenantLookup};
use tollgate_core::{Algorithm, Limit, Millis};

use super::*;
use crate::overrides::TableVersion;

fn apply(tenants: &Arc<Tenants>, batch: &TenantBatch) -> TenantsChanged {
    Tenants::apply(tenants, batch, 5).unwrap()
}

fn tenant(name: &str, plan: Option<&str>, quotas: &[(&str, u64, Option<u64>)]) -> Tenant {
    let quotas = quotas.iter().map(|&(limit, quota, burst)| {
        let limit = limit.into();
        TenantQuota { limit, quota, burst }
    });
    Tenant { name: name.into(), plan: plan.map(Into::into), quotas: quotas.collect() }
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", "[a-zé]{1,20}"]
}

fn rows() -> impl Strategy<Value = Tenant> {
    let number = prop_oneof![0..200_u64, 1..1_u64 << 50];
    let quota = ("[a-d]", number.clone(), proptest::option::of(number));
    let quotas = proptest::collection::btree_map(quota.0, (quota.1, quota.2), 0..4);
    (names(), proptest::option::of("[a-f]{1,8}"), quotas).prop_map(|(name, plan, quotas)| {
        let quotas: Vec<_> =
            quotas.iter().map(|(limit, (quota, burst))| (&**limit, *quota, *burst)).collect();
        let plan = plan.or_else(|| quotas.is_empty().then(|| "free".to_owned()));
        tenant(&name, plan.as_deref(), &quotas)
    })
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<Tenant>, bool),
    Remove(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let set = (proptest::collection::vec(rows(), 0..12), prop::bool::weighted(0.1));
    let step = prop_oneof![
        set.prop_map(|(rows, replace)| Step::Set(rows, replace)),
        names().prop_map(Step::Remove)
    ];
    proptest::collection::vec(step, 1..10)
}

proptest! {
    #[test]
    fn the_table_is_a_map(steps in steps()) {
        let (tenants, mut model) = (Arc::new(Tenants::default()), BTreeMap::new());
        for step in steps {
            let mut batch = TenantBatch::default();
            match &step {
                Step::Set(rows, replace) => {
                    if *replace {
                        batch = TenantBatch::replacing();
                        model.clear();
                    }
                    for row in rows {
                        batch.set(row).unwrap();
                        model.insert(row.name.clone(), row.clone());
                    }
                }
                Step::Remove(name) => {
                    batch.remove(name);
                    model.remove(&**name);
                }
            }
            let changed = apply(&tenants, &batch);
            prop_assert_eq!(changed.after, model.len());
        }
        for (name, row) in &model {
            let found = tenants.get(name);
            prop_assert_eq!(found.as_ref(), Some(row));
        }
        prop_assert_eq!(tenants.get("nobody"), None);
        let (mut listed, mut after) = (Vec::new(), None::<Box<str>>);
        loop {
            let (page, next) = tenants.list("a", after.as_deref(), (3, 4));
            listed.extend(page);
            let Some(next) = next else { break };
            after = Some(next);
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let expected: Vec<_> =
            model.values().filter(|row| row.name.starts_with('a')).cloned().collect();
        prop_assert_eq!(listed, expected);
    }

    #[test]
    fn a_partition_is_read_as_it_was_written_and_junk_never_panics(
        rows in proptest::collection::vec(rows(), 0..20),
        junk in proptest::collection::vec(any::<u8>(), 0..80),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let changes = rows.into_iter().map(batch::Change::Set).collect();
        let version = TableVersion { changes: 3, drawn: 4 };
        let updated = TenantPartition::merged(None, changes, false, (version, 77)).unwrap();
        let again = TenantPartition::from_bytes(version, updated.as_bytes().to_vec()).unwrap();
        prop_assert_eq!((&again, again.written_at()), (&updated, 77));
        let mut bytes = updated.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for bytes in [junk, bytes] {
            if let Ok(read) = TenantPartition::from_bytes(version, bytes) {
                prop_assert_eq!(read.tenants().count(), read.len());
                prop_assert_eq!(read.get("nobody"), None);
            }
        }
    }
}

#[test]
fn an_own_quota_precedes_the_plan_and_the_plan_the_default() {
    let minute = Millis::from_secs(60);
    let window = FixedWindow::new(3, minute, Anchor::FirstRequest).unwrap();
    let base = Arc::new(Limit::new("calls", Algorithm::FixedWindow(window)).unwrap());
    let pro = Arc::new(base.for_value("pro", 20, None).unwrap());
    let plans = QuotasByValue::by_tenant(0, None, vec![pro]).unwrap();
    let tenants = Arc::new(Tenants::default());
    let quota = |name: &str, plans| {
        tenants.limit(name.as_bytes(), &base, plans).map(|limit| limit.capacity())
    };
    assert_eq!(quota("own", Some(&plans)), None);
    let mut batch = TenantBatch::default();
    batch.set(&tenant("own", Some("pro"), &[("calls", 7, None), ("more", 9, None)])).unwrap();
    batch.set(&tenant("pro", Some("pro"), &[("more", 9, None)])).unwrap();
    batch.set(&tenant("gone", Some("gold"), &[])).unwrap();
    batch.set(&tenant("zero", Some("pro"), &[("calls", 0, None)])).unwrap();
    apply(&tenants, &batch);
    assert_eq!(quota("own", Some(&plans)), Some(7));
    assert_eq!((quota("pro", Some(&plans)), quota("pro", None)), (Some(20), None));
    assert_eq!(quota("gone", Some(&plans)), Some(3), "an unknown plan has the default");
    assert_eq!(quota("zero", Some(&plans)), Some(20), "the limit cannot count the quota 0");
    assert_eq!(quota("nobody", Some(&plans)), None);
    let updated = tenants.limit(b"own", &base, None).unwrap();
    assert!(Arc::ptr_eq(&updated, &tenants.limit(b"own", &base, None).unwrap()));
    assert_eq!(updated.state_digest(), base.state_digest());
    assert_eq!(*updated, base.of_tenant_value(updated.quota_value().unwrap().as_bytes()).unwrap());
}

#[test]
fn the_value_of_an_own_quota_restores_the_limit() {
    let bucket = TokenBucket::new(60, Millis::from_secs(60), 5).unwrap();
    let base = Limit::new("bucket", Algorithm::TokenBucket(bucket)).unwrap();
    for (quota, burst) in [(9, None), (90, Some(12)), (1 << 40, Some(1))] {
        let updated = base.for_tenant(quota, burst).unwrap();
        let value = updated.quota_value().unwrap().as_bytes();
        assert_eq!(base.of_tenant_value(value), Some(updated.clone()));
    }
    for other in ["", "pro", "tenant:", "tenant:x", "tenant:1/", "tenant:1/2/3", "tenant:0"] {
        assert_eq!(base.of_tenant_value(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn rows_have_bounds() {
    let long = "x".repeat(MAX_TENANT_NAME + 1);
    for name in ["", " a", "a\n", &long] {
        assert_eq!(tenant(name, Some("pro"), &[]).check(), Err(RowError::Name), "{name:?}");
    }
    assert_eq!(tenant("a", None, &[]).check(), Err(RowError::Empty));
    assert_eq!(tenant("a", Some(""), &[]).check(), Err(RowError::Plan));
    let twice = [("calls", 1, None), ("calls", 2, None)];
    assert_eq!(tenant("a", None, &twice).check(), Err(RowError::Duplicate("calls".into())));
    let huge = [("calls", u64::MAX, None)];
    assert_eq!(tenant("a", None, &huge).check(), Err(RowError::Number("calls".into())));
    let names: Vec<String> = (0..=MAX_TENANT_QUOTAS).map(|index| format!("l{index}")).collect();
    let many: Vec<_> = names.iter().map(|name| (&**name, 1, None)).collect();
    assert_eq!(tenant("a", None, &many).check(), Err(RowError::Quotas));
    assert_eq!(tenant("a", None, &many[1..]).check(), Ok(()));
}

#[test]
fn a_tenant_costs_at_most_64_bytes_beside_its_name() {
    const COUNT: usize = 50_000;
    let (mut batch, mut names) = (TenantBatch::default(), 0);
    for index in 0..COUNT {
        let name = format!("tenant-{index:07}");
        names += name.len();
        let own = [("calls", index as u64 + 1, None)];
        let own = if index % 4 == 0 { &own[..] } else { &[] };
        batch.set(&tenant(&name, Some(["free", "pro", "team"][index % 3]), own)).unwrap();
    }
    let tenants = Arc::new(Tenants::default());
    assert_eq!(apply(&tenants, &batch).after, COUNT);
    let each = (tenants.memory() - names) / COUNT;
    assert!(each <= 64, "{each} bytes");
}
