//! Statistics of servers, and the findings about them.

use tollgate_backend::{ExcessPermissions, PermissionCheck};

use super::*;

/// The statistics of a healthy primary with Redis 7.4.6.
const WELL: &str = "redis_version:7.4.6\r\nused_memory:2000000\r\nmaxmemory:100000000\r\n\
    maxmemory_policy:noeviction\r\nevicted_keys:0\r\naof_enabled:1\r\n\
    aof_last_write_status:ok\r\naof_last_bgrewrite_status:ok\r\nrdb_last_bgsave_status:ok\r\n\
    role:master\r\nconnected_slaves:1\r\nmin_slaves_good_slaves:1\r\n\
    slave0:ip=10.0.0.2,port=6379,state=online,offset=10,lag=0\r\nslave_repl_offset:10\r\n\
    db0:keys=12,expires=12,avg_ttl=5\r\n";

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Returns the findings about a server with `from` replaced by `to` in its statistics.
fn found(from: &str, to: &str) -> Vec<(&'static str, Level)> {
    assert!(WELL.contains(from), "{from}");
    let report = Inspection {
        info: Some(Info::new(&WELL.replace(from, to))),
        round_trip: None,
        micros: Some(NOW.as_millis() * 1_000),
        user: Some("tollgate".into()),
        save: None,
        excess: Some(ExcessPermissions::default()),
        loads_code: None,
    };
    let findings = of_counter_server(&report, NOW).into_iter();
    findings
        .filter(|finding| finding.level > Level::Ok)
        .map(|finding| {
            assert!(finding.remedy.is_some(), "{finding:?}");
            (finding.check, finding.level)
        })
        .collect()
}

#[test]
fn a_server_in_good_order_is_well() {
    assert_eq!(found("role", "role"), []);
}

#[test]
fn what_is_wrong_is_found_and_nothing_else() {
    let rows = [
        ("noeviction", "allkeys-lru", "eviction", Level::Problem),
        ("noeviction", "volatile-ttl", "eviction", Level::Problem),
        ("evicted_keys:0", "evicted_keys:7", "eviction", Level::Advice),
        ("expires=12", "expires=11", "expiry", Level::Advice),
        ("used_memory:2", "used_memory:82", "memory", Level::Warning),
        ("lag=0", "lag=3", "replication", Level::Warning),
        ("state=online", "state=wait_bgsave", "replication", Level::Warning),
        ("min_slaves_good_slaves:1", "x:1", "replication", Level::Advice),
        ("role:master", "role:slave\r\nmaster_link_status:down", "replication", Level::Warning),
        ("aof_last_write_status:ok", "aof_last_write_status:err", "persistence", Level::Problem),
        ("7.4.6", "7.4.5", "version", Level::Warning),
        ("7.4.6", "7.0.15", "version", Level::Warning),
        ("7.4.6", "5.0.14", "version", Level::Problem),
        ("7.4.6", "7.2.4\r\nvalkey_version:8.1.3", "version", Level::Warning),
    ];
    for (from, to, check, level) in rows {
        assert_eq!(found(from, to), [(check, level)], "{from} as {to}");
    }
}

#[test]
fn what_is_well_in_another_way_is_well() {
    let rows = [
        ("7.4.6", "6.2.20"),
        ("7.4.6", "8.4.0"),
        ("7.4.6", "7.2.4\r\nvalkey_version:9.0.1"),
        ("lag=0", "lag=2"),
        ("role:master", "role:slave\r\nmaster_link_status:up"),
        ("db0:keys=12,expires=12,avg_ttl=5\r\n", ""),
        ("aof_enabled:1", "aof_enabled:0"),
        ("maxmemory:100000000", "maxmemory:0"),
    ];
    for (from, to) in rows {
        assert_eq!(found(from, to), [], "{from} as {to}");
    }
}

#[test]
fn clocks_that_disagree_are_reported() {
    let levels =
        [(0, Level::Ok), (999, Level::Ok), (1_000, Level::Warning), (5_000, Level::Problem)];
    for (apart, level) in levels {
        for server in [NOW.as_millis() + apart, NOW.as_millis() - apart] {
            assert_eq!(clock::check(Some(server * 1_000), NOW).unwrap().level, level, "{apart}");
        }
    }
    assert_eq!(clock::check(None, NOW), None);
}

#[test]
fn a_user_who_may_do_more_than_count_is_reported() {
    let report = |user: Option<&str>, excess: ExcessPermissions| {
        let (user, excess) = (user.map(Into::into), Some(excess));
        let report = Inspection { user, excess, ..Default::default() };
        let finding = access::check(&report).unwrap();
        (finding.level, finding.message)
    };
    let excess = |commands: &[&'static str], foreign_keys| ExcessPermissions {
        commands: commands.to_vec(),
        foreign_keys,
        ..Default::default()
    };
    let well = ExcessPermissions { check: PermissionCheck::AclRules, ..Default::default() };
    assert_eq!(
        report(Some("tollgate"), well),
        (Level::Ok, "a user that may neither administer the server nor access foreign keys".into())
    );
    for (loads_code, end) in [
        (true, "; it may load functions and scripts"),
        (false, "`tollgate shards --library` prints"),
    ] {
        let (excess, loads_code) = (Some(ExcessPermissions::default()), Some(loads_code));
        let report = Inspection { excess, loads_code, ..Default::default() };
        let finding = access::check(&report).unwrap();
        assert!(finding.level == Level::Ok && finding.message.ends_with(end), "{finding:?}");
    }
    assert!(
        report(None, ExcessPermissions::default()).1.ends_with("as far as read-only commands show")
    );
    let all = ExcessPermissions { everything: true, ..excess(&["FLUSHALL"], true) };
    assert_eq!(
        report(Some("default"), all.clone()),
        (Level::Advice, "Tollgate uses the default user, which may do everything".into())
    );
    assert_eq!(report(Some("wide"), all).0, Level::Warning);
    let rows = [
        (excess(&["KEYS"], false), "run KEYS, which Tollgate never does"),
        (excess(&[], true), "access keys that are not Tollgate's"),
        (
            excess(&["FLUSHALL", "SAVE", "KEYS", "GET", "DBSIZE"], true),
            "run FLUSHALL, SAVE, KEYS and 2 more commands, which Tollgate never does, \
             and access keys that are not Tollgate's",
        ),
    ];
    for (excess, may) in rows {
        let expected = format!("the user in use may {may}");
        assert_eq!(report(None, excess), (Level::Warning, expected));
    }
    assert_eq!(access::check(&Inspection::default()), None, "of whom nothing is known");
}

#[test]
fn without_log_snapshot_and_replica_a_restart_forgets() {
    let info = Info::new("aof_enabled:0\r\nrole:master\r\nconnected_slaves:0\r\n");
    let level = |save| persistence::check(&info, save).unwrap().level;
    assert_eq!(level(Some("")), Level::Advice);
    assert_eq!(level(Some("3600 1")), Level::Ok);
    assert_eq!(level(None), Level::Ok);
}

#[test]
fn items_that_memcached_evicted_are_a_problem() {
    let stats = |evicted: &str| {
        [("version", "1.6.38"), ("evictions", evicted)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    };
    let worst = |report: Result<&std::collections::BTreeMap<_, _>, &String>| {
        of_memcached("m:11211", report).iter().map(|finding| finding.level).max().unwrap()
    };
    assert_eq!(worst(Ok(&stats("0"))), Level::Ok);
    assert_eq!(worst(Ok(&stats("3"))), Level::Problem);
    assert_eq!(worst(Err(&"no answer".to_owned())), Level::Problem);
}
