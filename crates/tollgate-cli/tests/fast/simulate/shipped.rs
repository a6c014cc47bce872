//! The real log with the shipped policies. Other tests and pages use the same numbers.

use tempfile::TempDir;

use crate::simulate::setup::*;

#[test]
fn github_on_the_real_log() {
    let report = simulate_json(&["--policy", &policy("github.yaml"), &shipped_log()]);
    for (name, count) in [
        ("requests", 10_000),
        ("admitted", 9_985),
        ("refused", 15),
        ("refunded", 445),
        ("malformed", 0),
        ("late", 0),
    ] {
        assert_eq!(report[name], count, "{name}");
    }
    let anonymous = &report["limits"]["anonymous"];
    for (name, count) in [
        ("requests", 10_000),
        ("admitted", 9_985),
        ("refused", 15),
        ("refunded", 445),
        ("malformed", 0),
        ("subjects", 1_753),
        ("peak", 60),
    ] {
        assert_eq!(anonymous[name], count, "{name}");
    }
    assert_eq!(report["limits"]["core"]["requests"], 0);
    assert_eq!(report["refunds"]["refused_without"], 48);
    assert_eq!(report["refunds"]["refusals_saved"], 33);
    assert_eq!(report["from"], "2015-05-17T10:05:00Z");
    let first = &report["subjects"][0];
    assert_eq!(
        (&first["subject"], &first["refused"]),
        (&"address=130.237.218.86".into(), &15.into())
    );
    let refusals = first["refusals"].as_array().unwrap();
    assert_eq!(refusals.iter().map(|episode| episode["count"].as_u64().unwrap()).sum::<u64>(), 15);
}

#[test]
fn github_without_refunds() {
    let folder = TempDir::new().unwrap();
    let report = simulate_json(&["--policy", &without_refunds(folder.path()), &shipped_log()]);
    assert_eq!((&report["refused"], &report["refunded"]), (&48.into(), &0.into()));
    assert_eq!(report["limits"]["anonymous"]["refused"], 48);
    assert!(report["refunds"].is_null());
}

#[test]
fn the_points_over_time_add_up_to_the_totals() {
    let report = simulate_json(&["--policy", &policy("github.yaml"), &shipped_log()]);
    let points = report["over_time"]["points"].as_array().unwrap();
    for name in ["requests", "admitted", "refused", "refunded"] {
        let sum: u64 = points.iter().map(|point| point[name].as_u64().unwrap()).sum();
        assert_eq!(report[name], sum, "{name}");
    }
    assert!(points.len() <= 120);
}

#[test]
fn the_table_reports_the_same() {
    let table = simulate(&["--policy", &policy("github.yaml"), "--top", "3", &shipped_log()]);
    for part in [
        "10,000 requests: 9,985 admitted, 15 refused (0.15 %), 445 refunded",
        "without them 48 would have been refused (+33)",
        "address=130.237.218.86",
        "20 May 01:05:49 to 01:05:59 (15)",
        "no request was evaluated on core, search, graphql, concurrent, points, queries, content, contents, time, query-time",
        "█",
    ] {
        assert!(table.contains(part), "{part:?} is not in\n{table}");
    }
    assert_eq!(table.matches("address=").count(), 3);
}

#[test]
fn every_policy_runs() {
    for name in ["github.yaml", "layered.yaml", "sign-in.yaml"] {
        let report = simulate_json(&["--policy", &policy(name), &shipped_log()]);
        assert_eq!(report["requests"], 10_000, "{name}");
        let (admitted, refused) =
            (report["admitted"].as_u64().unwrap(), report["refused"].as_u64().unwrap());
        assert_eq!(admitted + refused, 10_000, "{name}");
    }
}
