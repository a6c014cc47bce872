//! Converts the key `shed` to the settings of load shedding: the limits of the fleet, the bounds of
//! a node, and the modes.

use std::num::NonZeroU32;

use tollgate_core::policy::LimitBinding;
use tollgate_core::policy::shedding::{
    AdaptiveAlgorithm, AdaptiveBound, FLEET_NONCRITICAL, FLEET_POOL, FleetShedding, InFlightBound,
    ShedMode, Shedding, WorkerShedding,
};
use tollgate_core::{LimitError, Millis, Percent};

use crate::decode::{Duration, Field, Integer, Spanned, quoted};
use crate::raw::{Adaptive, AdaptiveKind, Fleet, PolicyFile, Shed, ShedModeName, Worker};
use crate::report::Report;

/// The default percentage of the fleet's capacity that only critical requests can use.
const RESERVE: Percent = match Percent::new(20) {
    Some(percent) => percent,
    None => Percent::NONE,
};

/// The default time after which a permit expires if its node has died.
const PERMIT_TTL: Millis = Millis::from_secs(60);

/// The default `timeout` of an adaptive bound with the algorithm `aimd`: the longest time until the
/// head of a response arrives.
const TIMEOUT: Millis = Millis::from_secs(5);

/// The largest bound that a policy can set for the requests in flight on one node.
const MAX_IN_FLIGHT: u64 = 1_000_000;

/// The settings of load shedding, and the concurrency limits that count the requests in flight on
/// all nodes.
#[derive(Default)]
pub(super) struct ResolvedShedding {
    pub(super) shedding: Shedding,
    pub(super) pools: Vec<LimitBinding>,
}

/// Returns the settings of load shedding, or `None` after reporting a mistake. `limits` is the
/// number of the policy's other limits, after which the limits of load shedding get their indices.
pub(super) fn shed(
    file: &PolicyFile,
    limits: usize,
    report: &mut Report<'_>,
) -> Option<ResolvedShedding> {
    let given = match &file.shed {
        Field::Absent => return Some(ResolvedShedding::default()),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let Shed { mode: shed_mode, fleet, worker } = &given.value;
    if fleet.is_absent() && worker.is_absent() {
        let hint = "fleet: { capacity: 200 }, or worker: { in_flight: 100 }";
        report.error(given.key, "`shed` has no shedder", hint);
        return None;
    }
    let pools = match fleet.given() {
        Some(fleet) => {
            check_reserved_names(file, report);
            Vec::from(pool_limits(fleet, report)?)
        }
        None => Vec::new(),
    };
    let fleet = match fleet {
        Field::Absent => None,
        Field::Invalid => return None,
        Field::Value(fleet) => {
            let mode = mode(&fleet.value.mode)?;
            Some(FleetShedding { mode, pool: limits, noncritical: limits + 1 })
        }
    };
    let worker = match worker {
        Field::Absent => None,
        Field::Invalid => return None,
        Field::Value(worker) => Some(bounds(worker, report)?),
    };
    Some(ResolvedShedding { shedding: Shedding { mode: mode(shed_mode)?, fleet, worker }, pools })
}

fn mode(raw: &Field<ShedModeName>) -> Option<ShedMode> {
    raw.or_default(|mode| mode.0, ShedMode::default())
}

/// Reports limits with names that are reserved for the limits of load shedding.
fn check_reserved_names(file: &PolicyFile, report: &mut Report<'_>) {
    let named = file.limits.value().into_iter().flat_map(|names| &names.0);
    for name in named.map(|named| &named.name) {
        if [FLEET_POOL, FLEET_NONCRITICAL].contains(&&*name.value) {
            let message =
                format_args!("the name {} is reserved for the fleet's pool", quoted(&name.value));
            report.error(name.at, message, "give this limit another name");
        }
    }
}

/// Returns the two concurrency limits that count requests in flight on all nodes: one for all
/// requests, and one for the noncritical requests. Returns `None` after reporting a mistake.
fn pool_limits(fleet: &Spanned<Fleet>, report: &mut Report<'_>) -> Option<[LimitBinding; 2]> {
    let Fleet { capacity, reserve_critical, permit_ttl, .. } = &fleet.value;
    let capacity_at = capacity.given()?.at;
    let capacity = capacity.value()?.0;
    let reserve = reserve_critical.or_default(|percent| percent.0, RESERVE)?;
    let ttl_at = permit_ttl.given().map_or(fleet.at, |ttl| ttl.at);
    let permit_ttl = permit_ttl.or_default(|ttl| ttl.0, PERMIT_TTL)?;
    // The reserve is rounded up, and so is never smaller than the configured percentage.
    let reserved =
        capacity.saturating_mul(reserve.parts().into()).div_ceil(Percent::ALL.parts().into());
    if capacity > 0 && reserved >= capacity {
        let at = reserve_critical.given().map_or(capacity_at, |percent| percent.at);
        let message = format_args!("{reserve} of {capacity} leaves no capacity for other requests");
        report.error(at, message, "lower the reserve, or raise the capacity");
        return None;
    }
    let at = |error: &LimitError| match error {
        LimitError::Zero("permit_ttl") | LimitError::TooLarge { what: "permit_ttl", .. } => ttl_at,
        _ => capacity_at,
    };
    let limits = FleetShedding::limits(capacity, reserved, permit_ttl);
    limits.map_err(|error| report.plain_error(at(&error), error)).ok()
}

/// Returns the bounds on the load of a node, or `None` after reporting a mistake.
fn bounds(worker: &Spanned<Worker>, report: &mut Report<'_>) -> Option<WorkerShedding> {
    let Worker { in_flight, adaptive, queue_delay, loop_delay, mode: raw } = &worker.value;
    if let (Some(_), Some(adaptive)) = (in_flight.given(), adaptive.given()) {
        let message = "`in_flight` and `adaptive` are bounds of the same number";
        report.error(adaptive.key, message, "remove one of them");
        return None;
    }
    let in_flight = match (in_flight, adaptive) {
        (Field::Invalid, _) | (_, Field::Invalid) => return None,
        (Field::Value(fixed), _) => Some(InFlightBound::Fixed(requests(fixed, report)?)),
        (_, Field::Value(adaptive)) => {
            Some(InFlightBound::Adaptive(adaptive_bound(adaptive, report)?))
        }
        (Field::Absent, Field::Absent) => None,
    };
    let (queue_delay, loop_delay) = (delay(queue_delay)?, delay(loop_delay)?);
    if in_flight.is_none() && queue_delay.is_none() && loop_delay.is_none() {
        let hint = "set in_flight, adaptive, queue_delay or loop_delay";
        report.error(worker.key, "`worker` has no bound", hint);
        return None;
    }
    Some(WorkerShedding { mode: mode(raw)?, in_flight, queue_delay, loop_delay })
}

fn adaptive_bound(adaptive: &Spanned<Adaptive>, report: &mut Report<'_>) -> Option<AdaptiveBound> {
    let Adaptive { algorithm, min, max, timeout } = &adaptive.value;
    let kind = algorithm.value()?.0;
    if let (AdaptiveKind::Gradient, Some(timeout)) = (kind, timeout.given()) {
        report.error(timeout.key, "`timeout` has no meaning for gradient", "it belongs to aimd");
        return None;
    }
    let timeout = timeout.or_default(|timeout| timeout.0, TIMEOUT)?;
    let (least, most) = (requests(min.given()?, report)?, requests(max.given()?, report)?);
    if least > most {
        let message = format_args!("`max` is {most}, less than `min`");
        report.error(max.given()?.at, message, format_args!("at least {least}"));
        return None;
    }
    let algorithm = match kind {
        AdaptiveKind::Gradient => AdaptiveAlgorithm::Gradient,
        AdaptiveKind::Aimd => AdaptiveAlgorithm::Aimd { timeout },
    };
    Some(AdaptiveBound { algorithm, min: least, max: most })
}

/// Returns a bound on the requests in flight, or `None` after reporting a mistake.
fn requests(given: &Spanned<Integer>, report: &mut Report<'_>) -> Option<NonZeroU32> {
    let number = Some(given.value.0).filter(|number| *number <= MAX_IN_FLIGHT);
    let number = number.and_then(|number| NonZeroU32::new(u32::try_from(number).ok()?));
    if number.is_none() {
        let message = format_args!("invalid bound of {} requests in flight", given.value.0);
        report.error(given.at, message, format_args!("expected 1 to {MAX_IN_FLIGHT}"));
    }
    number
}

/// Returns a delay, or `Some(None)` if the key is absent. Returns `None` if the delay has a
/// mistake, which is already reported.
fn delay(raw: &Field<Duration>) -> Option<Option<Millis>> {
    raw.or_default(|delay| Some(delay.0), None)
}
