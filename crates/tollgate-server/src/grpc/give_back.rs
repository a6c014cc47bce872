//! Giving back what no receipt proves: Envoy says how much, not when it was taken.

use tollgate::Limiter;
use tollgate::core::policy::descriptors::Limited;
use tollgate::core::{
    Ask, Charge, ChargeId, Cost, Limit, Mark, Reading, Repeats, Standing, Store, StoreError,
    Subject, Timestamp,
};

/// Gives `cost` back to the window in force, at most what was taken of it, and tells how the limit
/// then stands. Where nothing is counted nothing is stored; where an override says that nothing is,
/// nothing is given back, and there is no standing.
///
/// Of a sliding window it is the newest block that is given back to. What a concurrency limit or a
/// log holds belongs to single requests: without their receipts it stays.
pub(super) async fn give_back<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    cost: Cost,
) -> Result<Option<Standing>, StoreError> {
    let Some(limit) = limiter.counted_by(now, &limited.limit, &limited.subject) else {
        return Ok(None);
    };
    let ask = async |ask| one(limiter, now, &limit, &limited.subject, ask).await;
    let look = ask(Ask::Look { cost: Cost::PEEK }).await?;
    let mut reading = look;
    if cost != Cost::PEEK {
        reading = ask(refund(cost, look.mark)).await?;
        // The look may have been of a copy that lags; the refund itself never is.
        if reading.given_back == 0 && reading.mark != look.mark {
            reading = ask(refund(cost, reading.mark)).await?;
        }
    }
    Ok(Some(Standing::new(limit, Cost::PEEK, &reading)))
}

fn refund(cost: Cost, mark: Mark) -> Ask {
    Ask::Refund { cost, mark, id: ChargeId::default(), repeats: Repeats::Impossible }
}

async fn one<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limit: &Limit,
    subject: &Subject,
    ask: Ask,
) -> Result<Reading, StoreError> {
    let readings = limiter.store().apply(now, &[Charge { limit, subject, ask }]).await?;
    readings.first().copied().ok_or(StoreError::Corrupt)
}
