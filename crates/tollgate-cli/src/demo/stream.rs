//! A streamed response of a language model, with a policy that limits tokens. The tokens are
//! reserved when the request arrives, and settled at the end of the response.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tollgate::model::Cost;
use tollgate::model::policy::Named;
use tollgate::store::Memory;
use tollgate::{Limiter, tower};
use tollgate_proxy::Settings;

use super::model;
use crate::failure::Failure;

const POLICY: &str = include_str!("../../assets/llm-tokens.yaml");

/// The tokens that the request allows for the response.
pub(crate) const MAX_TOKENS: u64 = 400;

/// The longest time that the demo waits for the settlement.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);

/// The status of the token limit at two times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLimitStatus {
    /// The status while the model responds.
    pub(crate) writing: Tokens,
    /// The status after the response is settled.
    pub(crate) settled: Tokens,
}

/// The status of a token limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub(crate) used: u64,
    pub(crate) held: u64,
    pub(crate) remaining: u64,
}

/// Sends one request through a proxy to a model over real sockets.
pub(crate) async fn show() -> Result<TokenLimitStatus, Failure> {
    let service = TcpListener::bind("127.0.0.1:0").await?;
    let settings = Settings::new(format!("http://{}", service.local_addr()?).parse()?);
    settings.json_bodies.enable();
    let gate = Arc::new(Semaphore::new(0));
    let serving = tokio::spawn(model::serve(service, Arc::clone(&gate)));
    let policy = tollgate_policy::parse("policies/llm-tokens.yaml", POLICY)?.policy;
    let limiter = Arc::new(Limiter::new(policy, Memory::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let layer = tower::Layer::new(Arc::clone(&limiter));
    let proxying = tokio::spawn(tollgate_proxy::run(listener, settings, layer, pending()));
    let shown = send_request(address, &limiter, &gate).await;
    serving.abort();
    proxying.abort();
    shown
}

async fn send_request(
    proxy: SocketAddr,
    limiter: &Limiter<Memory>,
    gate: &Semaphore,
) -> Result<TokenLimitStatus, Failure> {
    let body = format!("{{\"model\":\"small\",\"stream\":true,\"max_tokens\":{MAX_TOKENS}}}");
    let request = Request::post(format!("http://{proxy}/v1/chat/completions"))
        .header(AUTHORIZATION, "Bearer me")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await?;
    let writing = tokens(limiter).await?;
    gate.add_permits(1);
    answer.into_body().collect().await?;
    let end = Instant::now() + STREAM_TIMEOUT;
    let mut settled = tokens(limiter).await?;
    while settled.held > 0 && Instant::now() < end {
        sleep(Duration::from_millis(1)).await;
        settled = tokens(limiter).await?;
    }
    Ok(TokenLimitStatus { writing, settled })
}

async fn tokens(limiter: &Limiter<Memory>) -> Result<Tokens, Failure> {
    let named = Named { limit: "tokens", cost: Cost::PEEK, subject: &[("key", Some("me"))] };
    let plan = limiter.policy().plan_named([named], limiter.key());
    let planned = plan.map_err(|(_, error)| error)?.planned;
    let (evaluation, _) = limiter.peek_planned(limiter.now(), &planned).await?;
    let status = evaluation.statuses.first().ok_or("the policy has no limit on tokens")?;
    let (used, held, remaining) = (status.used, status.reserved, status.remaining);
    Ok(Tokens { used, held, remaining })
}
