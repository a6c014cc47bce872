//! An HTTP client for the listeners of the nodes.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::ChaosError;

/// The longest time to wait for one answer of a node.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// A client with pooled and shared connections.
#[derive(Clone, Debug)]
pub(super) struct NodeClient(Client<HttpConnector, Full<Bytes>>);

impl NodeClient {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a POST request with `body` to the listener at `address`. Returns the JSON in the
    /// answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer, or if the answer is not a success with JSON.
    pub(super) async fn post(
        &self,
        address: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, ChaosError> {
        self.json(Method::POST, address, path, body.to_string()).await
    }

    /// Sends a GET request to the listener at `address`. Returns the JSON in the answer.
    ///
    /// # Errors
    /// The same as [`post`](Self::post).
    pub(super) async fn get(&self, address: &str, path: &str) -> Result<Value, ChaosError> {
        self.json(Method::GET, address, path, String::new()).await
    }

    /// Returns whether the listener at `address` reports that its node is ready.
    pub(super) async fn is_ready(&self, address: &str) -> bool {
        let response = self.send(Method::GET, address, "/readyz", String::new()).await;
        response.is_ok_and(|(status, _)| status.is_success())
    }

    async fn json(
        &self,
        method: Method,
        address: &str,
        path: &str,
        body: String,
    ) -> Result<Value, ChaosError> {
        let (status, body) = self.send(method, address, path, body).await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        match serde_json::from_str(&body) {
            Ok(answer) if status.is_success() => Ok(answer),
            _ => {
                Err(ChaosError::Operation(format!("{address}{path}"), format!("{status}: {body}")))
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        address: &str,
        path: &str,
        body: String,
    ) -> Result<(StatusCode, Bytes), ChaosError> {
        let failed = |error: String| ChaosError::Operation(format!("{address}{path}"), error);
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"))
            .header("content-type", "application/json")
            .body(Full::from(body))
            .map_err(|error| failed(error.to_string()))?;
        let answered = async {
            let response = self.0.request(request).await.map_err(|error| format!("{error:?}"))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        let late = || failed(format!("no answer within {ANSWERS_WITHIN:?}"));
        timeout(ANSWERS_WITHIN, answered).await.map_err(|_| late())?.map_err(failed)
    }
}
