//! The first of the two calls of a server in front of a service: everything before the service.

use std::future::Future;

use tollgate_core::policy::Ambiguity;
use tollgate_core::{Evaluation, RequestAttributes, Store, StoreError};

use super::Limiter;
use super::charge_mode::Reservation;
use super::decide::DecisionRequest;
use super::shedding::AdmissionPermits;
use crate::decision::Decision;
use crate::shed::ShedDecision;

/// The limiter's answer to the arrival of a request.
#[expect(clippy::large_enum_variant, reason = "most requests have it; a box costs an allocation")]
pub(crate) enum Started<H> {
    /// The client asked for the status of its limits.
    Status(Result<Evaluation, StoreError>),
    /// The request can be read in more than one way and is refused. Nothing was charged.
    Ambiguous(Ambiguity),
    /// The request is shed. Nothing was charged.
    ShedDecision(ShedDecision),
    /// The request was decided on. The first value holds its permits.
    Decided(H, Decision),
}

/// The work that decides on an arriving request.
enum Starting<Look, Admit, Decide> {
    Status(Look),
    Ambiguous(Ambiguity),
    Decision(Admit, Decide),
}

impl<S: Store> Limiter<S> {
    /// Starts a request: answers the status path, refuses an ambiguous request, sheds load, or
    /// decides. Reads the clock and the
    /// policy once. Reserves the [metered](Reservation::Metered) limits.
    ///
    /// `hold` creates a guard for the permits of an admitted request. The guard releases them when
    /// the request is refused, or when this future is dropped.
    pub(crate) fn start<H: Send, F>(
        &self,
        attributes: &RequestAttributes<'_>,
        hold: F,
    ) -> impl Future<Output = Started<H>> + Send + use<'_, S, H, F>
    where
        F: FnOnce(AdmissionPermits) -> H + Send,
    {
        let (now, policy) = (self.now(), self.policy());
        let is_status = policy.answers().status_path.as_deref() == Some(attributes.path)
            && attributes.method == "GET";
        let starting = if is_status {
            let planned = self.status_plan(now, &policy, attributes);
            Starting::Status(Box::pin(async move { self.look_at(now, &planned).await }))
        } else {
            let plan = self.plan_at(now, &policy, attributes);
            if let Some(ambiguity) = plan.ambiguity {
                self.report_ambiguous(now, ambiguity);
                Starting::Ambiguous(ambiguity)
            } else {
                let (priority, queue) = (plan.priority, plan.queue());
                let admit = self.enter(now, &policy, priority);
                let request = DecisionRequest::new(now, &policy, plan);
                let reservation = Reservation::Metered;
                let request = DecisionRequest { reservation, queue, ..request };
                Starting::Decision(admit, Box::pin(self.decide(request)))
            }
        };
        async move {
            match starting {
                Starting::Status(look) => {
                    Started::Status(look.await.map(|(evaluation, _)| evaluation))
                }
                Starting::Ambiguous(ambiguity) => Started::Ambiguous(ambiguity),
                Starting::Decision(admit, decide) => match admit.await {
                    Err(shed) => Started::ShedDecision(shed),
                    Ok(permits) => {
                        let held = hold(permits);
                        Started::Decided(held, decide.await)
                    }
                },
            }
        }
    }
}
