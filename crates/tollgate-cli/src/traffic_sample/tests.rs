use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use tollgate::model::Headers;

use super::*;
use crate::simulate::log::{Input, Log};

const POLICY: &str = r#"
subjects:
  token: { header: authorization }
  session: { cookie: sid }
  address: { client_address: {} }
limits:
  core: { quota: 10, window: 1h, per: token }
  visit: { quota: 10, window: 1h, per: session }
  anonymous: { quota: 10, window: 1h, per: address }
rules:
  - match: { has: token, header: { x-plan: pro } }
    limits: core
  - match: { has: session }
    limits: visit
  - limits: anonymous
"#;

/// Returns the policy. It is read only once, because tests send 150,000 requests.
fn policy() -> &'static Policy {
    static READ: LazyLock<Policy> =
        LazyLock::new(|| tollgate_policy::parse("policy.yaml", POLICY).unwrap().policy);
    &READ
}

struct Fields<'a>(&'a [(&'a str, &'a [u8])]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.iter().filter(|(field, _)| *field == name).nth(index).map(|(_, value)| *value)
    }
}

fn send(sample: &TrafficSample, now: u64, peer: u32, headers: &[(&str, &[u8])]) {
    let policy = policy();
    let attributes = RequestAttributes {
        method: "GET",
        path: "/a",
        query: Some("b=c"),
        host: Some("example.com"),
        peer: Some(IpAddr::V4(Ipv4Addr::from_bits(peer))),
        headers: &Fields(headers),
    };
    let key = HashKey::random();
    let plan = policy.plan(&attributes, &key);
    sample.on_plan(Timestamp::from_millis(now), policy, &attributes, &plan);
}

/// Returns the lines of the sample, and the headers that the log reader finds in each line.
fn read(sample: &TrafficSample, now: u64) -> (String, Vec<BTreeMap<String, String>>) {
    let Snapshot { log, options, .. } = sample.snapshot(Timestamp::from_millis(now));
    let text = String::from_utf8(log.to_vec()).unwrap();
    let mut found = Vec::new();
    let mut log = Log::open(&[Input::Sent(log)], &options).unwrap();
    while let Some(entry) = log.next_entry().unwrap() {
        let names = options.fields.headers().iter().enumerate();
        let value = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let headers =
            names.filter_map(|(index, name)| Some((name.clone(), value(entry.header(index)?))));
        found.push(headers.collect());
    }
    (text, found)
}

const START: u64 = 1_431_857_103_045;

#[test]
fn a_sample_has_what_the_policy_reads_and_no_credential() {
    let sample = TrafficSample::new(policy());
    let token: (&str, &[u8]) = ("authorization", b"Bearer very-secret");
    let cookies: (&str, &[u8]) = ("cookie", b"theme=dark; sid=other-secret");
    send(&sample, START, 7, &[token, ("x-plan", b"pro"), ("x-other", b"never read")]);
    send(&sample, START + 1, 7, &[token, ("x-plan", b"pro")]);
    send(&sample, START + 2, 8, &[cookies, ("user-agent", b"curl/8")]);
    let (text, found) = read(&sample, START + 3);
    assert!(!text.contains("secret") && !text.contains("never read"), "{text}");
    assert!(text.contains(r#""request_uri":"/a?b=c""#) && text.contains("curl/8"), "{text}");
    assert_eq!(found.len(), 3);
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0]["x-plan"], "pro");
    assert_eq!(found[0]["authorization"].len(), 32);
    assert!(found[2]["cookie"].starts_with("sid=") && found[2]["cookie"].len() == 36, "{found:?}");
}

#[test]
fn requests_leave_after_an_hour() {
    let sample = TrafficSample::new(policy());
    send(&sample, START, 1, &[]);
    send(&sample, START + 1_800_000, 2, &[]);
    assert_eq!(read(&sample, START + 3_600_000).1.len(), 2);
    assert_eq!(read(&sample, START + 3_600_001).1.len(), 1);
    assert_eq!(read(&sample, START + 9_000_000).1.len(), 0);
}

#[test]
fn a_full_sample_keeps_all_requests_of_fewer_clients() {
    let sample = TrafficSample::new(policy());
    let (clients, rounds) = (1_000, 50);
    for round in 0..rounds {
        for client in 0..clients {
            send(&sample, START + u64::from(round), client, &[]);
        }
    }
    let Snapshot { log, one_of, .. } = sample.snapshot(Timestamp::from_millis(START + 60));
    let text = String::from_utf8(log.to_vec()).unwrap();
    let requests = text.lines().count();
    assert!(requests <= MAX_SAMPLED_REQUESTS && text.len() <= MAX_SAMPLED_BYTES);
    assert!(one_of >= 2 && requests > 0, "{one_of} {requests}");
    let mut by_client = BTreeMap::<&str, u32>::new();
    for line in text.lines() {
        let client = line.split(r#""remote_addr":""#).nth(1).unwrap().split('"').next().unwrap();
        *by_client.entry(client).or_default() += 1;
    }
    assert!(by_client.values().all(|count| *count == rounds), "{by_client:?}");
}

#[test]
fn one_client_alone_neither_exceeds_the_bounds_nor_ends_the_sample() {
    let sample = TrafficSample::new(policy());
    for n in 0..3 * MAX_SAMPLED_REQUESTS as u64 {
        send(&sample, START + n / 100, 1, &[]);
    }
    assert!(read(&sample, START).1.len() <= MAX_SAMPLED_REQUESTS);
    assert!(sample.is_on());
}

#[test]
fn an_almost_empty_sample_takes_more_clients_again() {
    let sample = TrafficSample::new(policy());
    sample.threshold.store(u64::MAX >> 6, Ordering::Relaxed);
    for minute in 0..30 {
        for client in 0..500 {
            send(&sample, START + minute * 61_000, client, &[]);
        }
    }
    assert_eq!(sample.snapshot(Timestamp::from_millis(START)).one_of, 1);
}

#[test]
fn a_sample_that_is_off_stays_empty() {
    let sample = TrafficSample::off();
    send(&sample, START, 1, &[]);
    assert!(!sample.is_on());
    assert_eq!(read(&sample, START).1.len(), 0);
}

#[test]
fn a_new_policy_changes_what_is_recorded() {
    let sample = TrafficSample::new(&Policy::default());
    send(&sample, START, 1, &[("x-plan", b"pro")]);
    sample.on_policy_replaced(policy());
    send(&sample, START, 1, &[("x-plan", b"pro")]);
    let (_, found) = read(&sample, START);
    assert_eq!((found[0].len(), found[1].len()), (0, 1));
}
