use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate::model::{Millis, Policy, Store, Timestamp};
use tollgate::observe::{Decisions, Top};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore, OverrideTarget, Overrides,
};
use tollgate::store::memory::Memory;
use tollgate::{HashKey, Limiter, ManualClock, Tracer};
use tollgate_server::grpc::proto::{
    Code, DescriptorStatus, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
    RateLimitServiceClient, Unit,
};
use tollgate_server::{
    Access, ConnectionLimits, DrainTimeout, GrpcListener, Listener, Port, Served, ServerTls, serve,
};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// The start time of tests: ten seconds after the start of a minute.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_050_000);

/// The longest time that a test waits for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A listener over a store, on a port of its own, with a client.
pub(crate) struct World {
    pub(crate) client: RateLimitServiceClient<Channel>,
    pub(crate) address: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) overrides: Arc<Overrides>,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) top: Arc<Top>,
    end: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), DrainTimeout>>,
}

/// The settings of a listener.
#[derive(Default)]
pub(crate) struct Opening {
    pub(crate) access: Access,
    pub(crate) limits: ConnectionLimits,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) age: Option<Duration>,
    pub(crate) tracer: Tracer,
}

impl World {
    /// Opens a listener with an empty memory store and the policy `text`.
    pub(crate) async fn new(text: &str) -> Self {
        Self::over(Memory::default(), text, Opening::default()).await
    }

    pub(crate) async fn over(store: impl Store + 'static, text: &str, opening: Opening) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let policy = policy(text);
        let decisions = Arc::new(Decisions::new(&policy));
        let top = Arc::new(Top::new(&policy, START));
        let limiter = Limiter::new(policy, store)
            .with_clock(Arc::clone(&clock))
            .with_key(HashKey::from_secret(b"a key of the tests"))
            .with_observer((Arc::clone(&decisions), Arc::clone(&top)))
            .with_tracer(opening.tracer);
        let overrides = Arc::clone(limiter.overrides());
        let mut endpoint = GrpcListener::new(Arc::new(limiter), opening.access, opening.limits);
        if let Some(age) = opening.age {
            endpoint = endpoint.with_connection_age(age);
        }
        let listener = Listener::open(&"127.0.0.1:0".parse().unwrap(), Port::Exclusive).unwrap();
        let address = listener.local_address().unwrap();
        let listener = match opening.tls {
            Some(tls) => listener.with_tls(tls),
            None => listener,
        };
        let served = Served::new("grpc", listener, opening.limits, endpoint);
        let (end, requested) = oneshot::channel();
        let shutdown = async { drop(requested.await) };
        let ended = tokio::spawn(serve(vec![served], PATIENCE, shutdown));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let client = RateLimitServiceClient::new(endpoint.connect_lazy());
        Self { client, address, clock, overrides, decisions, top, end: Some(end), ended }
    }

    /// Calls the service with `descriptors` of the domain `edge`, one hit each.
    pub(crate) async fn decide(&self, descriptors: Vec<RateLimitDescriptor>) -> RateLimitResponse {
        self.send(request(descriptors)).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        request: RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        let answer = self.client.clone().should_rate_limit(request).await;
        answer.map(tonic::Response::into_inner)
    }

    /// Sets an override of the limit `limit` for all subjects, for a minute.
    pub(crate) async fn set_override(&self, limit: &str, effect: Effect) {
        let target =
            OverrideScope { limit: Some(limit.into()), target: OverrideTarget::AllSubjects };
        let expires_at = START.after(Millis::from_secs(60));
        let described = Override { target, effect, expires_at, reason: "a test".into() };
        self.overrides.change(START, OverrideChange::Set(described)).await.unwrap();
    }

    pub(crate) fn later(&self, millis: u64) {
        self.clock.advance(Millis::new(millis));
    }

    /// Shuts the listener down and waits for the end of the shutdown.
    pub(crate) async fn end(&mut self) -> Result<(), DrainTimeout> {
        drop(self.end.take());
        (&mut self.ended).await.unwrap()
    }
}

pub(crate) fn policy(text: &str) -> Policy {
    tollgate_policy::parse("test.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}")).policy
}

/// Creates a request to the domain `edge`.
pub(crate) fn request(descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 }
}

/// Creates a descriptor from text such as `generic_key=slow,path=/a`.
pub(crate) fn descriptor(text: &str) -> RateLimitDescriptor {
    let entry = |text: &str| {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Entry { key: key.into(), value: value.into() }
    };
    let entries = text.split(',').map(entry).collect();
    RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }
}

pub(crate) fn counting(text: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(text) }
}

pub(crate) fn giving_back(text: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { is_negative_hits: true, ..counting(text, hits) }
}

/// Formats a response as `OVER: OVER one 3/MINUTE left 0 in 50s; OK`. Header fields are left out.
pub(crate) fn printed(answer: &RateLimitResponse) -> String {
    let statuses: Vec<String> = answer.statuses.iter().map(status).collect();
    format!("{}: {}", code(answer.overall_code()), statuses.join("; "))
}

fn status(status: &DescriptorStatus) -> String {
    let mut text = code(status.code()).to_owned();
    if let Some(limit) = &status.current_limit {
        let unit = match limit.unit() {
            Unit::Unknown => String::new(),
            unit => format!("/{}", unit.as_str_name()),
        };
        let name = if limit.name.is_empty() { "-" } else { &limit.name };
        text.push_str(&format!(" {name} {}{unit}", limit.requests_per_unit));
    }
    if let Some(reset) = &status.duration_until_reset {
        let millis = reset.nanos / 1_000_000;
        let seconds = reset.seconds;
        let left = status.limit_remaining;
        let seconds =
            if millis == 0 { format!("{seconds}s") } else { format!("{seconds}.{millis:03}s") };
        text.push_str(&format!(" left {left} in {seconds}"));
    } else if status.limit_remaining > 0 {
        text.push_str(&format!(" left {}", status.limit_remaining));
    }
    text
}

fn code(code: Code) -> &'static str {
    match code {
        Code::Unknown => "UNKNOWN",
        Code::Ok => "OK",
        Code::OverLimit => "OVER",
    }
}
