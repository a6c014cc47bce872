//! Lists of networks in the policy file and in other files.

use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tollgate_core::{KeyedHash, Policy, RequestAttributes};
use tollgate_policy::{LoadError, LoadedPolicy, explain, load, parse, parse_relative_to, trace};

struct NoHash;

impl KeyedHash for NoHash {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

const POLICY: &str = "
limits: { core: { quota: 5, window: 1h } }
networks:
  office: [10.0.0.0/8, 2001:db8::/32]
  bots: { file: lists/bots.txt }
rules:
  - { name: exempt, match: { network: [office, 192.0.2.1] }, limits: [] }
  - { name: bots, match: { network: bots }, limits: core }
  - { name: rest, limits: core }
";

/// Writes a policy and its list of networks `bots` to a new directory. Returns the path of the
/// policy.
fn written(directory: &Path, bots: &[u8]) -> PathBuf {
    fs::create_dir_all(directory.join("lists")).unwrap();
    fs::write(directory.join("lists/bots.txt"), bots).unwrap();
    let path = directory.join("shop.yaml");
    fs::write(&path, POLICY).unwrap();
    path
}

fn loaded(directory: &Path, bots: &[u8]) -> LoadedPolicy {
    load(&written(directory, bots)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the name of the rule that matches a request of `client`.
fn rule(policy: &Policy, client: Option<&str>) -> String {
    let peer: Option<IpAddr> = client.map(|text| text.parse().unwrap());
    let attributes =
        RequestAttributes { method: "GET", path: "/", query: None, host: None, peer, headers: &() };
    policy.plan(&attributes, &NoHash).rules[0].name.to_string()
}

#[test]
fn clients_are_in_networks_of_the_rule_of_lists_and_of_files() {
    let directory = tempfile::tempdir().unwrap();
    let bots =
        b"\xef\xbb\xbf# bots\r\n203.0.113.0/24 ; spam\r\n\r\n  2001:db8:8::1 # one\r\n198.51.100.9";
    let loaded = loaded(directory.path(), bots);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    for (client, expected) in [
        (Some("10.1.2.3"), "exempt"),
        (Some("2001:db8:8::1"), "exempt"),
        (Some("::ffff:10.1.2.3"), "exempt"),
        (Some("192.0.2.1"), "exempt"),
        (Some("192.0.2.2"), "rest"),
        (Some("203.0.113.255"), "bots"),
        (Some("198.51.100.9"), "bots"),
        (Some("198.51.100.8"), "rest"),
        (None, "rest"),
    ] {
        assert_eq!(rule(&loaded.policy, client), expected, "{client:?}");
    }
    let explanation = explain(&loaded).to_string();
    let (_, explanation) = explanation.split_once("networks\n").unwrap();
    let expected = "  \
  office  2 ranges of addresses
  bots    3 ranges of addresses, from lists/bots.txt
limits
  core  5 requests per 1h for all clients together
rules, the first match decides
  exempt  from 192.0.2.1 or office → no limit
  bots    from bots → core
";
    assert!(explanation.starts_with(expected), "{explanation}");
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: "192.0.2.9".parse().ok(),
        headers: &(),
    };
    let traced = trace(&loaded.policy, &attributes, &NoHash).to_string();
    assert!(
        traced.starts_with("exempt  no: the client is not from 192.0.2.1 or office\n"),
        "{traced}"
    );
}

#[test]
fn mistakes_in_a_file_have_its_lines() {
    let directory = tempfile::tempdir().unwrap();
    let bots = b"10.0.0.0/8\n  10.0.0.1/8 # host bits\nAKIA-secret\n10.0.0.0/40\n";
    let error = load(&written(directory.path(), bots)).unwrap_err();
    let LoadError::Invalid(errors) = &error else { panic!("{error}") };
    let places: Vec<_> = errors
        .findings()
        .iter()
        .map(|finding| {
            assert!(finding.file().ends_with("lists/bots.txt"), "{finding}");
            (finding.line(), finding.column(), finding.message())
        })
        .collect();
    let expected = [
        (2, 3, "\"10.0.0.1/8\" is not a network"),
        (3, 1, "this line is not a network"),
        (4, 1, "\"10.0.0.0/40\" is not a network"),
    ];
    assert_eq!(places, expected);
    // A file that was named by mistake may contain a secret.
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().contains("use the first address of the network"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake_in_the_policy() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path(), b"10.0.0.0/8");
    let bots = directory.path().join("lists/bots.txt");
    fs::remove_file(&bots).unwrap();
    let explanation = |path: &Path| load(path).unwrap_err().to_string();
    assert!(explanation(&path).contains("shop.yaml:5:17: cannot read "), "{}", explanation(&path));
    fs::create_dir(&bots).unwrap();
    assert!(explanation(&path).contains("not a regular file"), "{}", explanation(&path));
    fs::remove_dir(&bots).unwrap();
    fs::write(&bots, [0xff, 0xfe]).unwrap();
    assert!(explanation(&path).contains("UTF-8"), "{}", explanation(&path));
    fs::write(&bots, "# nothing\n").unwrap();
    let warnings = load(&path).unwrap().warnings;
    assert!(warnings[0].message().ends_with("bots.txt has no networks"), "{warnings:?}");
}

#[test]
fn the_version_is_that_of_the_policy_and_its_files() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let version = |directory: &tempfile::TempDir, bots: &str| {
        loaded(directory.path(), bots.as_bytes()).version
    };
    assert_eq!(version(&one, "192.0.2.1\n"), version(&other, "192.0.2.1\n"));
    assert_ne!(version(&one, "192.0.2.1\n"), version(&other, "192.0.2.2\n"));
}

#[test]
fn a_hundred_thousand_networks_are_one_search() {
    let directory = tempfile::tempdir().unwrap();
    let mut bots = String::new();
    // The list contains every second /24 of 96.0.0.0/3, from the last to the first, and IPv6
    // networks.
    for index in (0..60_000_u32).rev() {
        let bytes = ((96 << 24) + index * 512).to_be_bytes();
        writeln!(bots, "{}.{}.{}.0/24", bytes[0], bytes[1], bytes[2]).unwrap();
        writeln!(bots, "2001:{:x}:{:x}::/48", index / 256, (index % 256) * 2).unwrap();
    }
    let loaded = loaded(directory.path(), bots.as_bytes());
    let list = &loaded.policy.rules()[1].matches.networks[0];
    assert_eq!(list.networks.ranges(), 120_000);
    for index in (0..60_000_u32).step_by(997) {
        let start = (96 << 24) + index * 512;
        let client = |number: u32| IpAddr::V4(number.into()).to_string();
        assert_eq!(rule(&loaded.policy, Some(&client(start + 255))), "bots");
        assert_eq!(rule(&loaded.policy, Some(&client(start + 256))), "rest");
    }
}

#[test]
fn a_policy_that_is_sent_reads_no_files() {
    let refused = parse("sent", POLICY).unwrap_err().to_string();
    assert!(refused.contains("sent:5:17: files are only read"), "{refused}");
    let directory = tempfile::tempdir().unwrap();
    let current = loaded(directory.path(), b"203.0.113.0/24").policy;
    let beside = parse_relative_to(&current, "sent", POLICY).unwrap();
    assert_eq!(rule(&beside.policy, Some("203.0.113.7")), "bots");
    let other = POLICY.replace("bots", "hosts");
    let refused = parse_relative_to(&current, "sent", &other).unwrap_err().to_string();
    assert!(refused.contains("the policy in force has no networks \"hosts\""), "{refused}");
}
