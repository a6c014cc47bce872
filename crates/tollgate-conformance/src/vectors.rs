//! Traces with their answers as lines of JSON, for implementations in other languages.
//!
//! `vectors/README.md` describes the format. The answers come from the model.

use serde_json::{Map, Value, json};
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitError, Millis,
    Operation, Reading, Refusals, StoredState, Timestamp,
};

use crate::model::Ledger;
use crate::random::Random;
use crate::trace::random_limit;

/// The files of vectors: the name of the algorithm, and the number that selects the algorithm in
/// [`random_limit`].
pub const FILES: [(&str, u64); 7] = [
    ("fixed_window", 0),
    ("fixed_window_calendar", 1),
    ("sliding_window", 2),
    ("two_bucket", 3),
    ("sliding_log", 4),
    ("token_bucket", 5),
    ("concurrency", 6),
];

/// The number of vectors in one file.
const LINES: u64 = 120;
/// The number of operations in one vector.
const STEPS: u64 = 12;

/// A limit with a sequence of operations and their answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// The limit.
    pub limit: Limit,
    /// The operations. Each entry has the time, the operation, and the reading after the operation.
    pub steps: Vec<(Timestamp, Operation, Reading)>,
}

/// Returns the vectors for the algorithm with the number `kind` (see [`FILES`]) as lines of JSON,
/// with the answers of the model.
#[must_use]
pub fn lines_of_model(kind: u64) -> String {
    (0..LINES).map(|seed| write(&vector_of_model(kind, seed)) + "\n").collect()
}

fn vector_of_model(kind: u64, seed: u64) -> Vector {
    let mut random = Random::new(seed << 8 | kind);
    let limit = random_limit(&mut random, kind, "vector");
    let mut ledger = Ledger::new(&limit);
    let mut now = random.one_of(&[1_000, 1_700_000_000_000, (1 << 51) + 1]);
    let mut charged: Vec<(Cost, ChargePosition, ChargeId)> = Vec::new();
    let window = limit.window().get().min(100_000);
    let steps = (0..STEPS).map(|step| {
        let jumps = [0, 0, 0, 1, window - 1, window, random.within(0..=window)];
        now += random.one_of(&jumps);
        let at = Timestamp::from_millis(now.saturating_sub(random.one_of(&[0, 0, 0, 0, 1, 700])));
        let id = ChargeId(step.into());
        let (operation, reading) = match random.within(0..=6) {
            0 if !charged.is_empty() => {
                let index = random.within(0..=charged.len() as u64 - 1) as usize;
                let (cost, position, id) = charged.swap_remove(index);
                let deduplication = Deduplication::Unneeded;
                (Operation::Refund { cost, position, id, deduplication }, ledger.refund(at, id))
            }
            1 if kind == 6 && !charged.is_empty() => {
                let (_, _, id) = random.one_of(&charged);
                (Operation::Renew { id }, ledger.renew(at, id))
            }
            2 => {
                let cost = random_cost(&mut random, &limit);
                (Operation::Peek { cost }, ledger.status(at, cost))
            }
            _ => {
                let cost = random_cost(&mut random, &limit);
                let reading = match ledger.status(at, cost).admission {
                    Admission::Now => ledger.admit(at, cost, id),
                    Admission::At(_) | Admission::Never => ledger.refuse(at, cost, id),
                };
                if reading.admission == Admission::Now && cost != Cost::PEEK {
                    charged.push((cost, reading.position, id));
                }
                (Operation::Charge { cost, id }, reading)
            }
        };
        (at, operation, reading)
    });
    let steps = steps.collect();
    Vector { limit, steps }
}

fn random_cost(random: &mut Random, limit: &Limit) -> Cost {
    let any = random.within(1..=limit.capacity().min(9));
    let units = random.one_of(&[0, 1, 1, 1, any, limit.capacity()]);
    Cost::new(units).unwrap_or(Cost::ONE)
}

/// Returns one vector as a line of JSON, without the line end.
#[must_use]
pub fn write(vector: &Vector) -> String {
    let steps: Vec<_> =
        vector.steps.iter().map(|(at, operation, reading)| step(*at, operation, reading)).collect();
    json!({ "limit": limit(&vector.limit), "steps": steps }).to_string()
}

/// Parses a line. Returns `None` if the line is not a valid vector.
#[must_use]
pub fn read(line: &str) -> Option<Vector> {
    let line: Value = serde_json::from_str(line).ok()?;
    let limit = read_limit(line.get("limit")?)?.ok()?;
    let steps = line.get("steps")?.as_array()?.iter().map(read_step).collect::<Option<_>>()?;
    Some(Vector { limit, steps })
}

fn limit(limit: &Limit) -> Value {
    let mut fields = match limit.algorithm() {
        Algorithm::FixedWindow(of) => json!({
            "algorithm": "fixed_window", "quota": of.quota(), "window": of.window().get(),
            "calendar": of.anchor() == Anchor::Calendar,
        }),
        Algorithm::SlidingWindow(of) => json!({
            "algorithm": "sliding_window", "quota": of.quota(), "window": of.window().get(),
            "precision": of.precision().get(),
        }),
        Algorithm::TwoBucket(of) => json!({
            "algorithm": "two_bucket", "quota": of.quota(), "window": of.window().get(),
        }),
        Algorithm::SlidingLog(of) => json!({
            "algorithm": "sliding_log", "quota": of.quota(), "window": of.window().get(),
        }),
        Algorithm::TokenBucket(of) => json!({
            "algorithm": "token_bucket", "quota": of.quota(), "window": of.window().get(),
            "burst": of.burst(),
        }),
        Algorithm::Concurrency(of) => json!({
            "algorithm": "concurrency", "quota": of.quota(), "permit_ttl": of.permit_ttl().get(),
        }),
    };
    fields["count_refused"] = (limit.refusals() == Refusals::Counted).into();
    fields["skew_max"] = limit.skew_max().get().into();
    fields
}

fn read_limit(fields: &Value) -> Option<Result<Limit, LimitError>> {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    let span = |name: &str| number(name).map(Millis::new);
    let quota = number("quota")?;
    let algorithm = match fields.get("algorithm")?.as_str()? {
        "fixed_window" => {
            let calendar = fields.get("calendar")?.as_bool()?;
            let anchor = if calendar { Anchor::Calendar } else { Anchor::FirstRequest };
            FixedWindow::new(quota, span("window")?, anchor).map(Algorithm::FixedWindow)
        }
        "sliding_window" => SlidingWindow::new(quota, span("window")?, span("precision")?)
            .map(Algorithm::SlidingWindow),
        "two_bucket" => TwoBucket::new(quota, span("window")?).map(Algorithm::TwoBucket),
        "sliding_log" => SlidingLog::new(quota, span("window")?).map(Algorithm::SlidingLog),
        "token_bucket" => {
            TokenBucket::new(quota, span("window")?, number("burst")?).map(Algorithm::TokenBucket)
        }
        "concurrency" => Concurrency::new(quota, span("permit_ttl")?).map(Algorithm::Concurrency),
        _ => return None,
    };
    let counted = fields.get("count_refused")?.as_bool()?;
    let refusals = if counted { Refusals::Counted } else { Refusals::Free };
    let skew_max = span("skew_max")?;
    Some(algorithm.and_then(|algorithm| {
        Ok(Limit::new("vector", algorithm)?.with_refusals(refusals)?.with_skew_max(skew_max))
    }))
}

fn step(at: Timestamp, operation: &Operation, reading: &Reading) -> Value {
    let mut fields = Map::new();
    fields.insert("now".into(), at.as_millis().into());
    let (name, cost, position, id) = match operation {
        Operation::Charge { cost, id } => ("charge", Some(cost), None, Some(id)),
        Operation::Peek { cost } => ("peek", Some(cost), None, None),
        Operation::Refund { cost, position, id, .. } => {
            ("refund", Some(cost), Some(position), Some(id))
        }
        Operation::Renew { id } => ("renew", None, None, Some(id)),
        Operation::Reset => ("reset", None, None, None),
        // Only the random traces contain the following operations. The files of vectors do not.
        Operation::Reserve { cost, id, .. } => ("reserve", Some(cost), None, Some(id)),
        Operation::Extend { id, position, .. } => ("extend", None, Some(position), Some(id)),
        Operation::Settle { id, position, cost } => {
            ("settle", Some(cost), Some(position), Some(id))
        }
    };
    fields.insert("operation".into(), name.into());
    fields.extend(id.map(|id| ("id".into(), id.0.to_string().into())));
    fields.extend(cost.map(|cost| ("cost".into(), cost.get().into())));
    fields.extend(position.map(|position| ("charge_position".into(), position.0.into())));
    fields.insert("admission".into(), admission(reading.admission));
    fields.insert("fits_again".into(), admission(reading.fits_again));
    fields.insert("used".into(), reading.used.into());
    fields.insert("full_reset_at".into(), reading.full_reset_at.as_millis().into());
    fields.insert("position".into(), reading.position.0.into());
    fields.insert("refunded".into(), reading.refunded.into());
    fields.insert("discarded".into(), (reading.found == StoredState::Discarded).into());
    fields.into()
}

fn read_step(fields: &Value) -> Option<(Timestamp, Operation, Reading)> {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    let cost = || number("cost").and_then(Cost::new);
    let id = || Some(ChargeId(fields.get("id")?.as_str()?.parse().ok()?));
    let operation = match fields.get("operation")?.as_str()? {
        "charge" => Operation::Charge { cost: cost()?, id: id()? },
        "peek" => Operation::Peek { cost: cost()? },
        "refund" => {
            let position = ChargePosition(number("charge_position")?);
            Operation::Refund {
                cost: cost()?,
                position,
                id: id()?,
                deduplication: Deduplication::Unneeded,
            }
        }
        "renew" => Operation::Renew { id: id()? },
        "reset" => Operation::Reset,
        _ => return None,
    };
    let discarded = fields.get("discarded")?.as_bool()?;
    let reading = Reading {
        admission: read_admission(fields.get("admission")?)?,
        fits_again: read_admission(fields.get("fits_again")?)?,
        used: number("used")?,
        full_reset_at: Timestamp::from_millis(number("full_reset_at")?),
        position: ChargePosition(number("position")?),
        refunded: number("refunded")?,
        added: 0,
        reserved: 0,
        found: if discarded { StoredState::Discarded } else { StoredState::Missing },
    };
    Some((Timestamp::from_millis(number("now")?), operation, reading))
}

fn admission(admission: Admission) -> Value {
    match admission {
        Admission::Now => "now".into(),
        Admission::At(moment) => moment.as_millis().into(),
        Admission::Never => "never".into(),
    }
}

fn read_admission(value: &Value) -> Option<Admission> {
    match value.as_str() {
        Some("now") => Some(Admission::Now),
        Some("never") => Some(Admission::Never),
        Some(_) => None,
        None => value.as_u64().map(Timestamp::from_millis).map(Admission::At),
    }
}
