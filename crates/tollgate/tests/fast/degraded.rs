//! Tests of the observer that counts decisions without the store by rule and cause, and logs these
//! decisions at a bounded rate.
#![allow(missing_docs)]

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tollgate::DecisionSource;
use tollgate::decision::ChargePositions;
use tollgate::limiter::Decision;
use tollgate::model::policy::{OnFailure, Rule};
use tollgate::model::{Evaluation, Millis, Policy, StoreError, Timestamp};
use tollgate::observe::{Degraded, DegradedCount, Observer};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A lock with which the tests run one after the other. If two threads log a line for the first
/// time at once, one thread may find the line disabled.
pub(crate) static TURNS: Mutex<()> = Mutex::new(());

fn policy() -> Policy {
    let rule = |name: &str| Rule::new(name, Default::default(), Vec::new());
    let rules = vec![rule("search"), rule("read")];
    Policy::new(Vec::new(), Vec::new(), rules, Default::default()).unwrap()
}

/// Returns a decision with the rules `names` and this source, `later` milliseconds after the start.
fn decision(names: &[&str], source: DecisionSource, later: u64) -> Decision {
    Decision {
        policy: Arc::default(),
        rules: names.iter().map(|name| Arc::from(*name)).collect(),
        evaluation: Evaluation::without_statuses(START.after(Millis::new(later))),
        shadow: None,
        candidates: Vec::new(),
        positions: ChargePositions::default(),
        conditional: Vec::new(),
        overrides: Vec::new(),
        source,
        is_blocked: false,
        on_failure: OnFailure::Local,
        charge: Default::default(),
        receipt: None,
        reserved: None,
        pending: None,
    }
}

#[test]
fn rules_keep_their_counts_under_another_policy() {
    let _turn = TURNS.lock();
    let degraded = Degraded::new(&policy());
    let late = DecisionSource::Fallback(StoreError::TimedOut);
    degraded.on_decision(&decision(&["search", "read"], late, 0));
    let rule = |name: &str| Rule::new(name, Default::default(), Vec::new());
    let rules = vec![rule("write"), rule("read")];
    let other = Policy::new(Vec::new(), Vec::new(), rules, Default::default()).unwrap();
    degraded.on_policy_replaced(&other);
    degraded.on_decision(&decision(&["write", "read", "search"], late, 1));
    let expected =
        [count(Some("write"), late, 1), count(Some("read"), late, 2), count(None, late, 2)];
    assert_eq!(degraded.snapshot(), expected);
}

fn count(rule: Option<&str>, source: DecisionSource, decisions: u64) -> DegradedCount {
    DegradedCount { rule: rule.map(Arc::from), source, decisions }
}

#[test]
fn every_decision_counts_with_each_of_its_rules_and_its_cause() {
    let _turn = TURNS.lock();
    let degraded = Degraded::new(&policy());
    let late = DecisionSource::Fallback(StoreError::TimedOut);
    let gone = DecisionSource::Failure(StoreError::Unavailable);
    for (rules, source) in [
        (&["search", "read"][..], late),
        (&["read"], late),
        (&["read"], gone),
        (&["read"], DecisionSource::Store),
        (&["search"], DecisionSource::DenyCache),
        (&["of another policy"], gone),
        (&["of a third"], gone),
    ] {
        degraded.on_decision(&decision(rules, source, 0));
    }
    let expected = [
        count(Some("search"), DecisionSource::DenyCache, 1),
        count(Some("search"), late, 1),
        count(Some("read"), late, 2),
        count(Some("read"), gone, 1),
        count(None, gone, 2),
    ];
    assert_eq!(degraded.snapshot(), expected);
}

/// The bug: decisions that no rule planned, such as those of descriptors or of limits by name, were
/// not counted, so no alert was raised when the store did not answer.
#[test]
fn decisions_without_a_rule_were_not_counted() {
    let _turn = TURNS.lock();
    let degraded = Degraded::new(&policy());
    let late = DecisionSource::Fallback(StoreError::TimedOut);
    degraded.on_decision(&decision(&[], late, 0));
    degraded.on_decision(&decision(&[], DecisionSource::Store, 0));
    degraded.on_decision(&decision(&["read"], late, 0));
    assert_eq!(degraded.snapshot(), [count(Some("read"), late, 1), count(None, late, 1)]);
}

#[test]
fn observers_combine() {
    let _turn = TURNS.lock();
    let (one, other) = (Arc::new(Degraded::new(&policy())), Arc::new(Degraded::new(&policy())));
    let both = (Arc::clone(&one), (Arc::clone(&other), ()));
    both.on_decision(&decision(&["read"], DecisionSource::DenyCache, 0));
    assert_eq!(one.snapshot(), [count(Some("read"), DecisionSource::DenyCache, 1)]);
    assert_eq!(one.snapshot(), other.snapshot());
}

#[test]
fn the_log_receives_of_a_cause_once_a_second_and_of_how_many_it_did_not() {
    let _turn = TURNS.lock();
    let degraded = Degraded::new(&policy());
    let (late, gone) = (
        DecisionSource::Fallback(StoreError::TimedOut),
        DecisionSource::Failure(StoreError::Unavailable),
    );
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for later in 0..=1_000 {
            degraded.on_decision(&decision(&["read"], late, later));
        }
        degraded.on_decision(&decision(&["search"], gone, 1_000));
        degraded.on_decision(&decision(&["search"], DecisionSource::DenyCache, 1_000));
        degraded.on_decision(&decision(&["search"], DecisionSource::Store, 1_000));
    });
    let by_fallback = |untold| {
        format!(
            "the store did not answer: the fallback decided; rule=\"read\"; error=the store did not answer in time; suppressed={untold}"
        )
    };
    let lines = log.lines.lock();
    assert_eq!(*lines, [
        by_fallback(0),
        by_fallback(999),
        "the store did not answer: on_failure decided; rule=\"search\"; error=the store cannot be reached; suppressed=0".into(),
    ]);
}

/// The bug: the log named an empty rule, and its `on_failure`, for decisions that no rule planned.
#[test]
fn decisions_without_a_rule_were_logged_with_an_empty_one() {
    let _turn = TURNS.lock();
    let degraded = Degraded::new(&policy());
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let gone = DecisionSource::Failure(StoreError::Unavailable);
        degraded.on_decision(&decision(&[], gone, 0));
    });
    assert_eq!(
        *log.lines.lock(),
        [
            "the store did not answer: on_failure decided; error=the store cannot be reached; suppressed=0",
        ]
    );
}

/// A subscriber that records the log lines.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.lines.lock().push(line.0.join("; "));
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

/// The fields of an event, with the message first.
#[derive(Default)]
struct Line(Vec<String>);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert(0, format!("{value:?}")),
            name => self.0.push(format!("{name}={value:?}")),
        }
    }
}
