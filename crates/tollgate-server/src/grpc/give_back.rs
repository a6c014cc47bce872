//! Giving back what no receipt proves: Envoy says how much, not when it was taken.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::core::policy::descriptors::Limited;
use tollgate::core::{
    Ask, Charge, ChargeId, Cost, Mark, Reading, Repeats, Standing, Store, StoreError, Timestamp,
};

/// Gives `cost` back to the window in force, at most what was taken of it, and tells how the limit
/// then stands. Where nothing is counted nothing is stored.
///
/// Of a sliding window it is the newest block that is given back to. What a concurrency limit or a
/// log holds belongs to single requests: without their receipts it stays.
pub(super) async fn give_back<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    cost: Cost,
) -> Result<Standing, StoreError> {
    let look = one(limiter, now, limited, Ask::Look { cost: Cost::PEEK }).await?;
    let mut reading = look;
    if cost != Cost::PEEK {
        reading = refund(limiter, now, limited, cost, look.mark).await?;
        // The look may have been of a copy that lags; the refund itself never is.
        if reading.given_back == 0 && reading.mark != look.mark {
            reading = refund(limiter, now, limited, cost, reading.mark).await?;
        }
    }
    Ok(Standing::new(Arc::clone(&limited.limit), Cost::PEEK, &reading))
}

async fn refund<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    cost: Cost,
    mark: Mark,
) -> Result<Reading, StoreError> {
    let (id, repeats) = (ChargeId::default(), Repeats::Impossible);
    one(limiter, now, limited, Ask::Refund { cost, mark, id, repeats }).await
}

async fn one<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    limited: &Limited,
    ask: Ask,
) -> Result<Reading, StoreError> {
    let charge = Charge { limit: &limited.limit, subject: &limited.subject, ask };
    let readings = limiter.store().apply(now, &[charge]).await?;
    readings.first().copied().ok_or(StoreError::Corrupt)
}
