//! The response header fields of each profile. The IETF fields are parsed by a structured-fields
//! parser.

use std::sync::Arc;

use http::HeaderMap;
use sfv::{BareItem, List, ListEntry, Parser};
use tollgate::headers::{self, HeaderLines};
use tollgate_core::algo::{Anchor, Concurrency, FixedWindow, SlidingWindow, TokenBucket};
use tollgate_core::policy::HeaderProfile;
use tollgate_core::{
    Admission, Algorithm, Cost, Evaluation, Limit, LimitStatus, Millis, Reading, Timestamp, Unit,
    Visibility,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_500);

fn core() -> Limit {
    let window = FixedWindow::new(5_000, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

fn burst() -> Limit {
    let window = SlidingWindow::new(10, Millis::new(2_500), Millis::new(500)).unwrap();
    Limit::new("burst", Algorithm::SlidingWindow(window)).unwrap().with_resource("search").unwrap()
}

fn concurrent() -> Limit {
    let limit = Concurrency::new(100, Millis::from_secs(60)).unwrap();
    Limit::new("concurrent", Algorithm::Concurrency(limit)).unwrap()
}

fn status(limit: Limit, used: u64, admission: Admission, whole_in: u64) -> LimitStatus {
    let full_reset_at = NOW.after(Millis::new(whole_in));
    let reading =
        Reading { admission, fits_again: admission, used, full_reset_at, ..Reading::default() };
    LimitStatus::new(Arc::new(limit), Cost::ONE, &reading)
}

fn written(profiles: &[HeaderProfile], statuses: Vec<LimitStatus>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    headers::write(profiles, &Evaluation { now: NOW, statuses }, &mut fields);
    fields
}

fn number(fields: &HeaderMap, name: &str) -> u64 {
    let text = fields.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap();
    text.parse().unwrap_or_else(|_| panic!("{name}: {text} is no whole number"))
}

/// Returns the members of a structured list, over all of its field lines: names and their
/// parameters.
fn members(fields: &HeaderMap, name: &str) -> Vec<(String, Vec<(String, BareItem)>)> {
    let lines: Vec<_> = fields.get_all(name).iter().map(|line| line.as_bytes()).collect();
    assert!(!lines.is_empty(), "no {name}");
    let list: List = Parser::new(&lines.join(&b", "[..])).parse().expect("a structured list");
    let member = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("an inner list in {name}") };
        let BareItem::String(text) = &item.bare_item else { panic!("no string in {name}") };
        let parameters = item.params.iter();
        let parameters = parameters.map(|(key, value)| (key.to_string(), value.clone())).collect();
        (text.as_str().to_owned(), parameters)
    };
    list.iter().map(member).collect()
}

fn integer(value: i64) -> BareItem {
    BareItem::Integer(value.try_into().unwrap())
}

#[test]
fn github_reports_the_tightest_limit() {
    let statuses = vec![
        status(core(), 1, Admission::Now, 3_599_100),
        status(burst(), 9, Admission::Now, 2_000),
    ];
    let fields = written(&[HeaderProfile::GitHub], statuses);
    assert_eq!(number(&fields, "x-ratelimit-limit"), 10);
    assert_eq!(number(&fields, "x-ratelimit-remaining"), 1);
    assert_eq!(number(&fields, "x-ratelimit-used"), 9);
    assert_eq!(number(&fields, "x-ratelimit-reset"), 1_700_000_003);
    assert_eq!(fields["x-ratelimit-resource"], "search");
    assert!(!fields.contains_key("retry-after"));
}

#[test]
fn a_refusal_reports_what_refused_and_when_to_come_again() {
    let ready_at = NOW.after(Millis::new(1_001));
    let refused = status(burst(), 10, Admission::At(ready_at), 2_000);
    let fields = written(
        &[HeaderProfile::GitHub, HeaderProfile::ThreeFields],
        vec![status(core(), 4_999, Admission::Now, 60_000), refused],
    );
    assert_eq!(number(&fields, "retry-after"), 2);
    assert_eq!(number(&fields, "x-ratelimit-remaining"), 0);
    assert_eq!(number(&fields, "x-ratelimit-limit"), 10);
    assert_eq!(number(&fields, "x-ratelimit-reset"), ready_at.as_secs_ceil());
    assert_eq!(number(&fields, "ratelimit-reset"), 2);
}

#[test]
fn a_wait_of_less_than_a_second_is_reported_as_one() {
    let refused = status(burst(), 10, Admission::At(NOW.after(Millis::new(1))), 2_000);
    assert_eq!(number(&written(&[], vec![refused]), "retry-after"), 1);
}

#[test]
fn what_never_fits_has_no_retry_after() {
    let fields =
        written(&[HeaderProfile::GitHub], vec![status(burst(), 0, Admission::Never, 2_000)]);
    assert!(!fields.contains_key("retry-after"));
}

#[test]
fn a_hidden_limit_that_refuses_is_not_contradicted() {
    let hidden = burst().with_visibility(Visibility::Hidden);
    let refused = status(hidden, 10, Admission::At(NOW.after(Millis::new(500))), 2_000);
    let statuses = vec![status(core(), 1, Admission::Now, 60_000), refused];
    for profile in [HeaderProfile::ThreeFields, HeaderProfile::Draft03] {
        let fields = written(&[profile], statuses.clone());
        let names: Vec<_> = fields.keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["retry-after"], "{profile:?}");
    }
    // With GitHub's profile, every refusal has the status fields. If no units are left, these
    // fields do not contradict the refusal.
    let fields = written(&[HeaderProfile::GitHub], statuses);
    let mut names: Vec<_> = fields.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let expected =
        ["retry-after", "x-ratelimit-limit", "x-ratelimit-reset", "x-ratelimit-resource"];
    assert_eq!(names, expected);
    assert_eq!(number(&fields, "x-ratelimit-limit"), core().capacity());
}

#[test]
fn githubs_profile_alone_has_no_retry_after_on_a_primary_refusal() {
    let ready_at = NOW.after(Millis::new(1_001));
    let refused = || status(burst(), 10, Admission::At(ready_at), 1_001);
    let refused_headers = written(&[HeaderProfile::GitHub], vec![refused()]);
    assert!(!refused_headers.contains_key("retry-after"));
    assert_eq!(number(&refused_headers, "x-ratelimit-remaining"), 0);
    assert_eq!(number(&refused_headers, "x-ratelimit-reset"), ready_at.as_secs_ceil());
    let both = [HeaderProfile::GitHub, HeaderProfile::Ietf];
    assert_eq!(number(&written(&both, vec![refused()]), "retry-after"), 2);

    // A hidden limit that refuses as well may make the client wait longer.
    let hidden = burst().with_visibility(Visibility::Hidden);
    let later = status(hidden, 10, Admission::At(NOW.after(Millis::new(9_000))), 9_000);
    let fields = written(&[HeaderProfile::GitHub], vec![refused(), later]);
    assert_eq!(number(&fields, "retry-after"), 9);
}

#[test]
fn the_limit_with_the_fewest_units_remaining_is_reported() {
    // One limit has 4,996 of 5,000 units used, and the other limit has 5 of 10 units used. The
    // response reports the limit with fewer remaining units, even if the other limit has a smaller
    // share left.
    let statuses = vec![
        status(core(), 4_994, Admission::Now, 3_599_100),
        status(burst(), 5, Admission::Now, 2_000),
    ];
    for order in [statuses.clone(), statuses.into_iter().rev().collect()] {
        let fields = written(&[HeaderProfile::GitHub], order);
        assert_eq!(number(&fields, "x-ratelimit-remaining"), 5);
        assert_eq!(number(&fields, "x-ratelimit-limit"), 10);
    }
}

#[test]
fn ietf_fields_are_structured_lists_of_every_visible_limit() {
    let hidden = Limit::new("secret", *core().algorithm()).unwrap();
    let statuses = vec![
        status(core(), 1, Admission::Now, 3_599_100),
        status(burst(), 4, Admission::Now, 1_200),
        status(hidden.with_visibility(Visibility::Hidden), 1, Admission::Now, 60_000),
        status(concurrent(), 7, Admission::Now, 60_000),
    ];
    let fields = written(&[HeaderProfile::Ietf], statuses);
    let policies = members(&fields, "ratelimit-policy");
    let expected = |pairs: &[(&str, BareItem)]| -> Vec<(String, BareItem)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    };
    let unit = BareItem::String("concurrent-requests".to_owned().try_into().unwrap());
    assert_eq!(
        policies,
        [
            ("core".into(), expected(&[("q", integer(5_000)), ("w", integer(3_600))])),
            // A window of 2.5 s is not a whole number of seconds: it is left out rather than
            // rounded.
            ("burst".into(), expected(&[("q", integer(10))])),
            ("concurrent".into(), expected(&[("q", integer(100)), ("qu", unit)])),
        ]
    );
    assert_eq!(
        members(&fields, "ratelimit"),
        [
            ("core".into(), expected(&[("r", integer(4_999)), ("t", integer(3_600))])),
            ("burst".into(), expected(&[("r", integer(6)), ("t", integer(2))])),
            ("concurrent".into(), expected(&[("r", integer(93)), ("t", integer(60))])),
        ]
    );
}

/// The bug: quotas and remaining units of more than 15 digits were written in full, and a parser of
/// structured fields rejects the whole field.
#[test]
fn integers_of_sixteen_digits_were_written_into_structured_fields() {
    let (most, largest) = (999_999_999_999_999, (1 << 53) - 1);
    let window = FixedWindow::new(largest, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let wide = Limit::new("wide", Algorithm::FixedWindow(window)).unwrap();
    let fields =
        || Evaluation { now: NOW, statuses: vec![status(wide.clone(), 1, Admission::Now, 60_000)] };
    let mut lines = HeaderLines::default();
    headers::write(&[HeaderProfile::Ietf], &fields(), &mut lines);
    let lines: Vec<_> = lines.as_str().lines().filter_map(|line| line.split_once(": ")).collect();
    let written = written(&[HeaderProfile::Ietf], fields().statuses);
    for (name, value) in lines {
        assert_eq!(written[name], value);
    }
    let [(_, policy)] = &members(&written, "ratelimit-policy")[..] else { panic!() };
    assert_eq!(policy[0], ("q".into(), integer(most)));
    let [(_, usage)] = &members(&written, "ratelimit")[..] else { panic!() };
    assert_eq!(usage[0], ("r".into(), integer(most)));
}

#[test]
fn units_are_told() {
    let bytes = core().with_unit(Unit::ContentBytes);
    let fields = written(&[HeaderProfile::Ietf], vec![status(bytes, 1, Admission::Now, 1_000)]);
    let (_, parameters) = &members(&fields, "ratelimit-policy")[0];
    let unit = BareItem::String("content-bytes".to_owned().try_into().unwrap());
    assert!(parameters.contains(&("qu".to_owned(), unit)));
}

#[test]
fn draft_03_lists_every_policy_behind_the_tightest() {
    let statuses = vec![
        status(core(), 1, Admission::Now, 3_599_100),
        status(burst(), 9, Admission::Now, 2_000),
    ];
    let fields = written(&[HeaderProfile::Draft03], statuses);
    let expected = r#"10, 5000;w=3600;name="core", 10;w=3;name="burst""#;
    assert_eq!(fields["x-ratelimit-limit"], expected);
    assert_eq!(number(&fields, "x-ratelimit-remaining"), 1);
    assert_eq!(number(&fields, "x-ratelimit-reset"), 2);
}

#[test]
fn an_upstreams_own_lists_are_kept_and_its_single_values_replaced() {
    let mut fields = HeaderMap::new();
    fields.insert("ratelimit", "\"theirs\";r=1;t=9".parse().unwrap());
    fields.insert("x-ratelimit-limit", "77".parse().unwrap());
    let statuses = vec![status(core(), 1, Admission::Now, 3_599_100)];
    let evaluation = Evaluation { now: NOW, statuses };
    headers::write(&[HeaderProfile::GitHub, HeaderProfile::Ietf], &evaluation, &mut fields);
    let entry = |name: &str, remaining, seconds| {
        let parameters = vec![("r".into(), integer(remaining)), ("t".into(), integer(seconds))];
        (name.to_owned(), parameters)
    };
    let lists = members(&fields, "ratelimit");
    assert_eq!(lists, [entry("theirs", 1, 9), entry("core", 4_999, 3_600)]);
    assert_eq!(number(&fields, "x-ratelimit-limit"), 5_000);
}

#[test]
fn requests_that_no_limit_speaks_of_carry_no_fields() {
    let all = [HeaderProfile::GitHub, HeaderProfile::Ietf, HeaderProfile::ThreeFields];
    assert!(written(&all, Vec::new()).is_empty());
}

#[test]
fn a_token_bucket_is_shown_as_the_policy_defines_it() {
    let bucket = TokenBucket::new(100, Millis::from_secs(60), 20).unwrap();
    let limit = Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap();
    let reset = Admission::At(NOW.after(Millis::new(600)));
    let refused = status(limit, 20, reset, 12_000);
    let fields = written(&[HeaderProfile::Ietf], vec![refused.clone()]);
    assert_eq!(fields["ratelimit-policy"], "\"core\";q=100;w=60;burst=20");
    let fields = written(&[HeaderProfile::Draft03], vec![refused.clone()]);
    assert_eq!(fields["x-ratelimit-limit"], "20, 100;w=60;burst=20;name=\"core\"");
    let evaluation = Evaluation { now: NOW, statuses: vec![refused] };
    let body = tollgate::problem::quota_exceeded(&evaluation, 429);
    assert!(body.contains("Refused by limit core (100 per 1m, burst 20); try again"), "{body}");
}
