//! The meaning of each key, and the defaults.

use std::path::PathBuf;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::policy::answers::RefundPolicy;
use tollgate_core::policy::{
    AddressHeader, ChargeOn, Forwarding, HeaderProfile, JsonPointer, MatchMode, Meter,
    MeteredLimit, Network, OnFailure, ReservationAmount, ReservationSource, ResponseSettings,
    RuleMode, SubjectSource, UnreadBodies,
};
use tollgate_core::{Algorithm, CertificateName, Cost, Limit, Millis, Refusals, Unit, Visibility};
use tollgate_policy::{
    DashboardMode, DashboardSettings, KeySource, ListenerSettings, ListenerTlsFiles, LoadedPolicy,
    MemoryBounds, ServeSettings, Settings, StoreSettings, parse,
};

const HOUR: Millis = Millis::from_secs(3_600);

fn loaded(text: &str) -> LoadedPolicy {
    parse("shop.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Loads a policy file with one limit, a rule that uses the limit, and the additional text `more`.
fn with(more: &str) -> LoadedPolicy {
    loaded(&format!(
        "limits: {{ core: {{ quota: 5, window: 1h }} }}\nrules: [{{ limits: core }}]\n{more}"
    ))
}

fn limit(keys: &str) -> Limit {
    let loaded =
        loaded(&format!("limits: {{ core: {{ {keys} }} }}\nrules: [{{ limits: core }}]\n"));
    (*loaded.policy.limits()[0].limit).clone()
}

fn source(keys: &str) -> SubjectSource {
    let text = format!(
        "subjects: {{ who: {{ {keys} }} }}\nlimits: {{ core: {{ quota: 5, window: 1h, per: who }} }}\n\
         rules: [{{ match: {{ path: '/{{id}}', has: who }}, limits: core }}]\n"
    );
    let loaded = loaded(&text);
    loaded.policy.dimensions()[0].source.clone()
}

#[test]
fn algorithms_have_their_numbers() {
    let first = Anchor::FirstRequest;
    for (keys, expected) in [
        (
            "quota: 5_000, window: 1h",
            Algorithm::FixedWindow(FixedWindow::new(5_000, HOUR, first).unwrap()),
        ),
        (
            "algorithm: fixed_window, quota: 5, window: 60m, anchor: calendar",
            Algorithm::FixedWindow(FixedWindow::new(5, HOUR, Anchor::Calendar).unwrap()),
        ),
        (
            "algorithm: sliding_window, quota: 5, window: 1h",
            Algorithm::SlidingWindow(SlidingWindow::new(5, HOUR, Millis::from_secs(60)).unwrap()),
        ),
        (
            "algorithm: sliding_window, quota: 5, window: 1h, precision: 10m",
            Algorithm::SlidingWindow(SlidingWindow::new(5, HOUR, Millis::from_secs(600)).unwrap()),
        ),
        (
            "algorithm: sliding_window, quota: 5, window: 7ms",
            Algorithm::SlidingWindow(
                SlidingWindow::new(5, Millis::new(7), Millis::new(1)).unwrap(),
            ),
        ),
        (
            "algorithm: two_bucket, quota: 5, window: 1h",
            Algorithm::TwoBucket(TwoBucket::new(5, HOUR).unwrap()),
        ),
        (
            "algorithm: sliding_log, quota: 5, window: 1h",
            Algorithm::SlidingLog(SlidingLog::new(5, HOUR).unwrap()),
        ),
        (
            "algorithm: token_bucket, quota: 5, window: 1h",
            Algorithm::TokenBucket(TokenBucket::new(5, HOUR, 5).unwrap()),
        ),
        (
            "algorithm: token_bucket, quota: 5, window: 1h, burst: 50",
            Algorithm::TokenBucket(TokenBucket::new(5, HOUR, 50).unwrap()),
        ),
        (
            "algorithm: concurrency, quota: 5",
            Algorithm::Concurrency(Concurrency::new(5, Millis::from_secs(60)).unwrap()),
        ),
        (
            "algorithm: concurrency, quota: 5, permit_ttl: 1m30s",
            Algorithm::Concurrency(Concurrency::new(5, Millis::from_secs(90)).unwrap()),
        ),
    ] {
        assert_eq!(*limit(keys).algorithm(), expected, "{keys}");
    }
}

#[test]
fn calendar_windows_have_their_schedule() {
    for (keys, expected) in [
        ("window: day", "day in UTC"),
        ("window: day, timezone: asia/tokyo", "day in Asia/Tokyo"),
        ("window: week", "week from Monday in UTC"),
        ("window: week, week_start: sunday", "week from Sunday in UTC"),
        ("window: month, timezone: Europe/Berlin", "month in Europe/Berlin"),
        ("window: month, billing_day: 31", "month from day 31 in UTC"),
        ("window: year", "year in UTC"),
    ] {
        let limit = limit(&format!("quota: 5, {keys}"));
        let Algorithm::FixedWindow(window) = limit.algorithm() else { panic!("{keys}") };
        let Anchor::Scheduled(schedule) = window.anchor() else { panic!("{keys}") };
        assert_eq!(schedule.name(), expected, "{keys}");
        assert_eq!(limit, limit.with_quota(5, None).unwrap());
    }
}

#[test]
fn a_candidate_inherits_what_fits_its_window() {
    let candidate = |keys: &str| {
        let limit = limit(&format!(
            "quota: 5, window: month, billing_day: 15, timezone: Asia/Tokyo, candidate: {{ {keys} }}"
        ));
        let Algorithm::FixedWindow(window) = limit.candidate().unwrap().algorithm() else {
            panic!("{keys}")
        };
        match window.anchor() {
            Anchor::Scheduled(schedule) => schedule.name().to_owned(),
            Anchor::FirstRequest | Anchor::Calendar => window.window().to_string(),
        }
    };
    assert_eq!(candidate("quota: 6"), "month from day 15 in Asia/Tokyo");
    assert_eq!(candidate("billing_day: 1"), "month in Asia/Tokyo");
    assert_eq!(candidate("window: week"), "week from Monday in Asia/Tokyo");
    assert_eq!(candidate("window: 1h"), "1h");
    assert_eq!(candidate("timezone: UTC"), "month from day 15 in UTC");
}

#[test]
fn limits_are_reported_as_written() {
    let algorithm =
        Algorithm::FixedWindow(FixedWindow::new(5, HOUR, Anchor::FirstRequest).unwrap());
    let plain = Limit::new("core", algorithm).unwrap();
    assert_eq!(limit("quota: 5, window: 1h"), plain);
    assert_eq!(limit("quota: 5, window: 1h, visible: true, count_refused: false"), plain);
    let keys = "quota: 5, window: 1h, visible: false, count_refused: true, resource: api, \
                unit: content-bytes, skew_max: 2s";
    let expected = plain
        .with_visibility(Visibility::Hidden)
        .with_refusals(Refusals::Counted)
        .and_then(|limit| limit.with_resource("api"))
        .unwrap()
        .with_unit(Unit::ContentBytes)
        .with_skew_max(Millis::from_secs(2));
    assert_eq!(limit(keys), expected);
}

#[test]
fn subjects_have_their_sources() {
    let credential = |header: &str| SubjectSource::Credential { header: header.into() };
    let plain = |header: &str| SubjectSource::Header { header: header.into() };
    let address =
        |ipv4_prefix, ipv6_prefix| SubjectSource::ClientAddress { ipv4_prefix, ipv6_prefix };
    let json =
        |unread| SubjectSource::Json { pointer: JsonPointer::parse("/model").unwrap(), unread };
    for (keys, expected) in [
        ("header: Authorization", credential("authorization")),
        ("header: x-api-key", credential("x-api-key")),
        ("header: cookie", credential("cookie")),
        ("header: X-User", plain("x-user")),
        ("header: x-user, keep: clear", plain("x-user")),
        ("header: x-user, keep: hashed", credential("x-user")),
        ("credential: x-partner", credential("x-partner")),
        ("cookie: SID", SubjectSource::Cookie { cookie: "SID".into() }),
        ("client_address: {}", address(32, 64)),
        ("client_address: true, ipv4_prefix: 24, ipv6_prefix: 48", address(24, 48)),
        ("path_parameter: id", SubjectSource::PathParameter { parameter: "id".into() }),
        ("host: {}", SubjectSource::Host),
        ("route: true", SubjectSource::Route),
        ("method: {}", SubjectSource::Method),
        ("json: /model", json(UnreadBodies::Pass)),
        ("json: /model, unread: refuse", json(UnreadBodies::Refuse)),
        ("query: api_key", SubjectSource::Query { parameter: "api_key".into(), is_secret: true }),
        (
            "query: user, keep: clear",
            SubjectSource::Query { parameter: "user".into(), is_secret: false },
        ),
        ("path_segment: 2", SubjectSource::PathSegment { number: 2 }),
        ("tls_client: common_name", SubjectSource::TlsClient { name: CertificateName::CommonName }),
        ("tls_client: uri", SubjectSource::TlsClient { name: CertificateName::Uri }),
        ("constant: all", SubjectSource::Constant { value: "all".into() }),
    ] {
        assert_eq!(source(keys), expected, "{keys}");
    }
}

#[test]
fn rules_have_their_conditions_and_costs() {
    let loaded = loaded(
        "
subjects: { token: { header: authorization }, user: { header: x-user } }
limits:
  core: { quota: 5, window: 1h }
  points: { quota: 900, window: 1m, cost: 3 }
rules:
  - name: write
    match:
      method: [POST, PUT]
      path: [/a/**, '/b/{id}']
      host: [Example.COM, '*.example.org.', '[::1]']
      header: [x-beta, { X-Version: 2, accept: application/json }]
      has: token
      lacks: [user]
    limits: [core, { points: 5 }]
    mode: shadow
  - match: { path: /health }
    limits: []
  - limits: points
",
    );
    assert_eq!(loaded.policy.match_mode(), MatchMode::FirstMatch);
    let [write, health, rest] = loaded.policy.rules() else { panic!("three rules") };
    let matches = &write.matches;
    let methods: Vec<&str> = matches.methods.iter().map(|method| &**method).collect();
    let paths: Vec<&str> = matches.paths.iter().map(|path| path.as_str()).collect();
    let hosts: Vec<&str> = matches.hosts.iter().map(|host| &**host).collect();
    let headers: Vec<(&str, Option<&str>)> = matches
        .headers
        .iter()
        .map(|header| (&*header.name, header.values.first().map(|value| value.as_str())))
        .collect();
    assert_eq!(methods, ["POST", "PUT"]);
    assert_eq!(paths, ["/a/**", "/b/{id}"]);
    assert_eq!(hosts, ["example.com", "*.example.org", "[::1]"]);
    let wanted = [("x-beta", None), ("x-version", Some("2")), ("accept", Some("application/json"))];
    assert_eq!(headers, wanted);
    assert_eq!((&*matches.has, &*matches.lacks), (&[0][..], &[1][..]));
    let costs = |rule: &tollgate_core::policy::Rule| -> Vec<(usize, u64)> {
        rule.limits.iter().map(|used| (used.limit, used.cost.get())).collect()
    };
    assert_eq!((costs(write), write.mode), (vec![(0, 1), (1, 5)], RuleMode::Shadow));
    assert_eq!((costs(health), health.mode, &*health.name), (vec![], RuleMode::Enforce, "rule-2"));
    assert_eq!((costs(rest), &*rest.name), (vec![(1, 3)], "rule-3"));
}

#[test]
fn metered_costs_say_what_reports_them_and_what_is_reserved() {
    let pointer = |text| JsonPointer::parse(text).unwrap();
    let size = |bytes| Meter::Size { bytes: std::num::NonZeroU64::new(bytes).unwrap() };
    let field = |name: &str| ReservationSource::Header { field: name.into() };
    for (cost, otherwise, meter, reserve) in [
        ("from_header: X-Cost", 1, Meter::Header { field: "x-cost".into() }, None),
        ("from_json: /usage/a~1b", 1, Meter::Json { pointer: pointer("/usage/a~1b") }, None),
        ("from_size: 1KiB, reserve: 7", 7, size(1024), None),
        (
            "from_time: 10ms, reserve: { from_header: X-Max, default: 3, min: 2, max: 5 }",
            3,
            Meter::Time { each: Millis::new(10) },
            Some(ReservationAmount {
                source: field("x-max"),
                at_least: Some(Cost::new(2).unwrap()),
                at_most: Some(Cost::new(5).unwrap()),
            }),
        ),
        (
            "from_size: 1B, reserve: { from_json: /max, default: 9 }",
            9,
            size(1),
            Some(ReservationAmount {
                source: ReservationSource::Json { pointer: pointer("/max") },
                at_least: None,
                at_most: None,
            }),
        ),
    ] {
        let limits = format!("limits: {{ core: {{ quota: 9, window: 1h, cost: {{ {cost} }} }} }}");
        let in_limit = loaded(&format!("{limits}\nrules: [{{ limits: core }}]"));
        let in_rule = loaded(&format!(
            "limits: {{ core: {{ quota: 9, window: 1h }} }}\nrules: [{{ limits: [{{ core: {{ {cost} }} }}] }}]"
        ));
        for loaded in [in_limit, in_rule] {
            let rule = &loaded.policy.rules()[0];
            assert_eq!(rule.limits[0].cost.get(), otherwise, "{cost}");
            let (meter, reserve) = (std::sync::Arc::new(meter.clone()), reserve.clone());
            assert_eq!(rule.metered, [MeteredLimit { limit: 0, meter, reserve }], "{cost}");
        }
    }
    // A number in the rule has precedence over the limit's.
    let number = loaded(
        "limits: { core: { quota: 9, window: 1h, cost: { from_time: 1ms } } }\nrules: [{ limits: [{ core: 2 }] }]",
    );
    assert!(number.policy.rules()[0].metered.is_empty());
}

#[test]
fn nobody_is_trusted_unless_named() {
    assert_eq!(*with("").policy.forwarding(), Forwarding::default());
    let loaded = with(
        "trusted_proxies: [10.0.0.0/8, 2001:db8::/32, 192.0.2.1]\nforwarded: { header: forwarded, hops: 2 }\n",
    );
    let trusted = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"];
    let expected = Forwarding {
        trusted: trusted.iter().map(|text| Network::parse(text).unwrap()).collect(),
        header: AddressHeader::Forwarded,
        hops: Some(2),
    };
    assert_eq!(*loaded.policy.forwarding(), expected);
    assert_eq!(with("rules_apply: all_matches\n").policy.match_mode(), MatchMode::AllMatches);
}

#[test]
fn answers_are_given_as_written() {
    assert_eq!(*with("").policy.answers(), ResponseSettings::default());
    let loaded = with(
        "
answers:
  headers: [ietf, draft-03, three-fields]
  refund: { status: [304, 404], upstream_failure: true }
  refuse: { status: 403 }
  status_path: /rate_limit
  on_failure: deny
",
    );
    let expected = ResponseSettings {
        headers: vec![HeaderProfile::Ietf, HeaderProfile::Draft03, HeaderProfile::ThreeFields],
        refund_statuses: vec![304, 404],
        refund_upstream_failure: RefundPolicy::Refund,
        refuse_status: 403,
        refusal: None,
        status_path: Some("/rate_limit".into()),
        on_failure: OnFailure::Deny,
    };
    assert_eq!(*loaded.policy.answers(), expected);
    assert!(with("answers: { headers: [] }\n").policy.answers().headers.is_empty());
}

#[test]
fn what_happens_without_the_store_is_the_rules_choice() {
    let rules = |answers: &str| {
        let text = format!(
            "limits: {{ core: {{ quota: 1, window: 1s }} }}\n{answers}rules:\n  - limits: core\n  \
             - {{ limits: core, on_failure: allow, charge: on_completion }}\n"
        );
        let policy = parse("shop.yaml", &text).unwrap().policy;
        policy.rules().iter().map(|rule| (rule.on_failure, rule.charge)).collect::<Vec<_>>()
    };
    let second = (OnFailure::Allow, ChargeOn::Completion);
    assert_eq!(rules(""), [(OnFailure::Local, ChargeOn::Arrival), second]);
    let denied = rules("answers: { on_failure: deny }\n");
    assert_eq!(denied, [(OnFailure::Deny, ChargeOn::Arrival), second]);
}

#[test]
fn a_file_has_the_version_of_its_text() {
    let (one, other) = (with(""), with("# another\n"));
    assert_eq!(one.version, with("").version);
    assert_ne!(one.version, other.version);
    assert_eq!((one.version.len(), other.version.len()), (12, 12));
}

#[test]
fn listeners_are_opened_as_written() {
    let loaded = with(
        "
serve:
  http:  { listen: '127.0.0.1:8181' }
  grpc:
    listen: unix:/run/tollgate/grpc.sock
    tls: { certificate: cert.pem, key: key.pem, client_ca: ca.pem }
  resp:  { listen: '0.0.0.0:6380', tokens: { file: /run/secrets/tokens } }
  admin: { listen: systemd:admin, tokens: { env: TOLLGATE_TOKENS } }
",
    );
    let listener = |listen: &str| ListenerSettings {
        listen: listen.into(),
        tokens: None,
        tls: None,
        hosts: Vec::new(),
    };
    let file = |path: &str| PathBuf::from(path);
    let tls = ListenerTlsFiles {
        certificate: file("cert.pem"),
        key: file("key.pem"),
        clients: Some(file("ca.pem")),
    };
    let tokens = KeySource::File { path: file("/run/secrets/tokens") };
    let variable = KeySource::Environment { name: "TOLLGATE_TOKENS".to_owned() };
    let expected = ServeSettings {
        dashboard: DashboardSettings::default(),
        http: Some(listener("127.0.0.1:8181")),
        grpc: Some(ListenerSettings { tls: Some(tls), ..listener("unix:/run/tollgate/grpc.sock") }),
        resp: Some(ListenerSettings { tokens: Some(tokens), ..listener("0.0.0.0:6380") }),
        admin: Some(ListenerSettings { tokens: Some(variable), ..listener("systemd:admin") }),
    };
    assert_eq!(loaded.settings.serve, expected);
}

#[test]
fn the_dashboard_can_be_put_away_and_has_names() {
    let dashboard = |serve: &str| with(serve).settings.serve.dashboard;
    assert_eq!(dashboard(""), DashboardSettings::default());
    let written =
        "serve: { dashboard: { enabled: false, hosts: [Tollgate.example.com, node-1] } }\n";
    let hosts = vec!["tollgate.example.com".into(), "node-1".into()];
    let (shown, samples_traffic) = (DashboardMode::Disabled, true);
    assert_eq!(dashboard(written), DashboardSettings { shown, samples_traffic, hosts });
    let written = "serve: { dashboard: { traffic_sample: false } }";
    assert!(!dashboard(written).samples_traffic);
}

#[test]
fn settings_are_those_of_the_deployment() {
    assert_eq!(with("").settings, Settings::default());
    let loaded = with(
        "secret: { env: TOLLGATE_SECRET }\nstore: { memory: { max_entries: 5_000, max_bytes: 64MiB } }\n",
    );
    let expected = Settings {
        key: KeySource::Environment { name: "TOLLGATE_SECRET".to_owned() },
        store: StoreSettings::Memory(MemoryBounds { max_entries: 5_000, max_bytes: 64 << 20 }),
        ..Settings::default()
    };
    assert_eq!(loaded.settings, expected);
    let path = PathBuf::from("/run/secrets/tollgate");
    let loaded = with("secret: { file: /run/secrets/tollgate }\n");
    assert_eq!(loaded.settings.key, KeySource::File { path });
}
