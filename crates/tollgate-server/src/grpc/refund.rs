//! Refunds without a receipt: Envoy sends the number of units to refund, but not the time of the
//! charge.

use tollgate::Limiter;
use tollgate::model::policy::descriptors::Limited;
use tollgate::model::{
    Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitStatus, Operation, Reading,
    Store, StoreError, Subject, Timestamp,
};

/// Refunds `cost` to the current window, but at most the units that were charged in that window.
/// Returns the limit's status after the refund. A window without charges is left unchanged. If an
/// override lifts the limit, nothing is refunded, and the function returns `None`.
///
/// In a sliding window, the units of the newest block are refunded. Nothing is refunded to a
/// concurrency limit or a sliding log, because their units belong to single requests, and the
/// receipts of these requests are not known here.
pub(super) async fn refund_hits<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    cost: Cost,
) -> Result<Option<LimitStatus>, StoreError> {
    let Some(limit) = limiter.counted_by(now, &limited.limit, &limited.subject) else {
        return Ok(None);
    };
    let apply = async |operation| one(limiter, now, &limit, &limited.subject, operation).await;
    let peek = apply(Operation::Peek { cost: Cost::PEEK }).await?;
    let mut reading = peek;
    if cost != Cost::PEEK {
        reading = apply(refund(cost, peek.position)).await?;
        // The peek may have read a replica that lags, so its window may differ from the window of
        // the primary, to which the refund always goes.
        if reading.refunded == 0 && reading.position != peek.position {
            reading = apply(refund(cost, reading.position)).await?;
        }
    }
    Ok(Some(LimitStatus::new(limit, Cost::PEEK, &reading)))
}

fn refund(cost: Cost, position: ChargePosition) -> Operation {
    Operation::Refund {
        cost,
        position,
        id: ChargeId::default(),
        deduplication: Deduplication::Unneeded,
    }
}

async fn one<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limit: &Limit,
    subject: &Subject,
    operation: Operation,
) -> Result<Reading, StoreError> {
    let readings = limiter.store().apply(now, &[Charge { limit, subject, operation }]).await?;
    readings.first().copied().ok_or(StoreError::Corrupt)
}
