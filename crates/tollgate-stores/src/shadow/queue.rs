//! A queue to the shadow store, which processes one call at a time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tollgate_core::{
    Admission, Charge, ChargeId, ChargePosition, DecisionSource, Operation, Readings, Store,
    Timestamp,
};

use super::difference::Comparison;
use crate::owned_charge::OwnedCharge;

/// The maximum number of charges in each queue for which the position is kept for later refunds.
const MAX_CHARGES: usize = 4_096;

/// A call on both stores, with the deciding store's answer.
#[derive(Debug)]
pub(super) struct ShadowCall {
    pub(super) now: Timestamp,
    pub(super) charges: Vec<OwnedCharge>,
    pub(super) readings: Readings,
}

/// Sends the received calls to `shadow` and compares the answers, until the queue is closed.
pub(super) async fn run<S: Store>(
    mut receiver: mpsc::Receiver<ShadowCall>,
    shadow: Arc<S>,
    comparison: Arc<Comparison>,
) {
    let mut positions = ShadowPositions::default();
    while let Some(call) = receiver.recv().await {
        let charges: Vec<_> =
            call.charges.iter().filter_map(|charge| positions.own(charge.as_charge())).collect();
        if charges.len() < call.charges.len() {
            comparison.uncomparable();
            continue;
        }
        match shadow.apply(call.now, &charges).await {
            Ok(readings) if is_its_own(&readings) => {
                positions.learn(&charges, &readings);
                comparison.compare(call.now, &charges, &call.readings, &readings);
            }
            Ok(_) | Err(_) => comparison.unanswered(),
        }
    }
}

/// Returns whether the shadow store itself made the decision, and not a fallback.
fn is_its_own(readings: &Readings) -> bool {
    match readings.source() {
        DecisionSource::Store | DecisionSource::DenyCache => true,
        // These sources may refuse before the quota is reached.
        DecisionSource::Overflow | DecisionSource::Fallback(_) | DecisionSource::Failure(_) => {
            false
        }
    }
}

/// The positions of the shadow store's own charges.
#[derive(Default)]
struct ShadowPositions {
    known: HashMap<(ChargeId, u128), ChargePosition>,
    order: VecDeque<(ChargeId, u128)>,
}

impl ShadowPositions {
    fn learn(&mut self, charges: &[Charge<'_>], readings: &Readings) {
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            if let Some((cost, id)) = charge.operation.as_charge()
                && cost.get() > 0
                && reading.admission == Admission::Now
            {
                let key = (id, charge.limit.state_digest());
                if self.known.insert(key, reading.position).is_none() {
                    self.order.push_back(key);
                }
            }
        }
        while self.order.len() > MAX_CHARGES {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Returns `charge` with the position of the shadow store's own charge, or `None` if that
    /// position is not known.
    fn own<'a>(&self, charge: Charge<'a>) -> Option<Charge<'a>> {
        let mut operation = charge.operation;
        let (Operation::Refund { position, id, .. }
        | Operation::Settle { position, id, .. }
        | Operation::Extend { position, id, .. }) = &mut operation
        else {
            return Some(charge);
        };
        *position = *self.known.get(&(*id, charge.limit.state_digest()))?;
        Some(Charge { operation, ..charge })
    }
}
