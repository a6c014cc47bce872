//! Giving back what no receipt proves: Envoy says how much, not when it was taken.

use tollgate::Limiter;
use tollgate::core::policy::descriptors::Limited;
use tollgate::core::{
    Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitStatus, Operation, Reading,
    Store, StoreError, Subject, Timestamp,
};

/// Gives `cost` back to the window in force, at most what was taken of it, and tells how the limit
/// then stands. Where nothing is counted nothing is stored; where an override says that nothing is,
/// nothing is refunded, and there is no status.
///
/// Of a sliding window it is the newest block that is given back to. What a concurrency limit or a
/// log holds belongs to single requests: without their receipts it stays.
pub(super) async fn refund_hits<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    cost: Cost,
) -> Result<Option<LimitStatus>, StoreError> {
    let Some(limit) = limiter.counted_by(now, &limited.limit, &limited.subject) else {
        return Ok(None);
    };
    let ask = async |ask| one(limiter, now, &limit, &limited.subject, ask).await;
    let look = ask(Operation::Peek { cost: Cost::PEEK }).await?;
    let mut reading = look;
    if cost != Cost::PEEK {
        reading = ask(refund(cost, look.position)).await?;
        // The look may have been of a copy that lags; the refund itself never is.
        if reading.refunded == 0 && reading.position != look.position {
            reading = ask(refund(cost, reading.position)).await?;
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
