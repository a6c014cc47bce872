//! The health of the listener, as `grpc.health.v1` reports it.

use std::pin::Pin;

use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use super::proto::SERVICE_NAME;
use tollgate_http::{Phase, Shutdown};

/// Reports `SERVING` until the process starts to drain, even if the store does not answer. Without
/// the store, `on_failure` of the policy decides on requests, and another node could not help,
/// because all nodes use the same store.
pub(super) struct Health(pub(super) Shutdown);

/// The name under which envoyproxy/ratelimit reports its health.
const ENVOY_RATELIMIT: &str = "ratelimit";

fn is_known(service: &str) -> bool {
    matches!(service, "" | SERVICE_NAME | ENVOY_RATELIMIT)
}

impl Health {
    fn now(&self) -> HealthCheckResponse {
        let status = match self.0.phase() {
            Phase::Serving => ServingStatus::Serving,
            Phase::Draining | Phase::Cut => ServingStatus::NotServing,
        };
        HealthCheckResponse { status: status.into() }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match request.get_ref().service.as_str() {
            name if is_known(name) => Ok(Response::new(self.now())),
            other => {
                Err(Status::not_found(format!("unknown service {other:?}: call {SERVICE_NAME:?}")))
            }
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = is_known(&request.get_ref().service);
        let unknown = HealthCheckResponse { status: ServingStatus::ServiceUnknown.into() };
        let first = if is_known { self.now() } else { unknown };
        let mut shutdown = self.0.clone();
        let last = async move {
            shutdown.reached(Phase::Draining).await;
            let status = if is_known { ServingStatus::NotServing.into() } else { unknown.status };
            Ok(HealthCheckResponse { status })
        };
        let first = futures_util::stream::once(std::future::ready(Ok(first)));
        let both = futures_util::StreamExt::chain(first, futures_util::stream::once(last));
        Ok(Response::new(Box::pin(both)))
    }
}
