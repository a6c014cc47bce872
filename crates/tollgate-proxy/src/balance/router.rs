//! Selects the group of servers that serves a request, and sends the request to one of the group's
//! addresses.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{HeaderValue, Request, Response, header};
use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate::tower::MatchedRules;

use super::{
    endpoint::{Endpoint, is_failure},
    pick::{RandomSequence, pick},
};
use crate::body::RequestBody;
use crate::expected_response::ExpectedResponse;
use crate::failure::UpstreamFailure;
use crate::pool::{Links, Outgoing, Resend, StreamedBody, Unanswered};
use crate::settings::Settings;
use crate::upstream::Upstream;
use crate::upstream_metrics::{Addresses, Retry, UpstreamStatus};
use crate::upstreams::{RouteMatch, RoutePrefix};

/// The largest number of times that a request is sent to a further address, because the previous
/// address could not be reached.
const MAX_RETRIES: usize = 2;
/// The time after which the host names of upstreams are looked up again, if all addresses can be
/// reached.
const RESOLVE_EVERY: Duration = Duration::from_secs(10);
/// The shortest time from one lookup of host names to the next. The next lookup starts this early
/// if an address could not be reached since the last lookup.
const RESOLVE_PAUSE: Duration = Duration::from_secs(1);

/// The routes of the proxy. A route leads from a rule, a host or the start of a path to a group of
/// servers.
#[derive(Debug)]
pub(crate) struct Router {
    rules: HashMap<Box<str>, Arc<Group>>,
    /// The groups of the routes with a prefix. Routes with a host come before routes without one,
    /// and longer prefixes before shorter prefixes.
    prefixes: Vec<(RoutePrefix, Arc<Group>)>,
    default: Arc<Group>,
}

impl Router {
    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        let group = |upstreams: &[_]| {
            let group = Arc::new(Group::new(upstreams, settings));
            settings.upstream_metrics.add(&group);
            group
        };
        let upstreams = &settings.upstreams;
        let default = group(upstreams.default_group());
        let (mut rules, mut prefixes) = (HashMap::new(), Vec::new());
        for (requests, upstreams) in upstreams.routes() {
            let group = group(upstreams);
            match requests {
                RouteMatch::Rule(name) => {
                    rules.insert(name.clone(), group);
                }
                RouteMatch::Prefix(prefix) => prefixes.push((prefix.clone(), group)),
            }
        }
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.specificity()));
        Self { rules, prefixes, default }
    }

    /// Returns the group of servers for `request`. `matched` are the rules of the policy that
    /// matched the request. It is `None` if the layer does not report these rules.
    pub(crate) fn group(
        &self,
        request: Option<&Request<RequestBody>>,
        matched: Option<&MatchedRules>,
    ) -> &Arc<Group> {
        let mut names = matched.into_iter().flat_map(|rules| &rules.0);
        if let Some(group) = names.find_map(|name| self.rules.get(&**name)) {
            return group;
        }
        let found = request.filter(|_| !self.prefixes.is_empty()).and_then(|request| {
            let host = request.headers().get(header::HOST).map_or(&[][..], HeaderValue::as_bytes);
            let path = request.uri().path();
            self.prefixes.iter().find(|(prefix, _)| prefix.matches(host, path))
        });
        found.map_or(&self.default, |(_, group)| group)
    }
}

/// A group of servers that serve the same requests, with the addresses of their host names.
#[derive(Debug)]
pub(crate) struct Group {
    upstreams: Vec<Upstream>,
    settings: Arc<Settings>,
    endpoints: ArcSwap<Vec<Arc<Endpoint>>>,
    /// The lookups of the servers' host names. `None` if all hosts are IP addresses.
    lookups: Option<Lookups>,
    random: RandomSequence,
}

/// The state of the lookups of host names. At most one lookup runs at a time.
#[derive(Debug, Default)]
struct Lookups {
    running: Arc<tokio::sync::Mutex<()>>,
    last: Mutex<LastLookup>,
}

#[derive(Debug, Default)]
struct LastLookup {
    at: Option<Instant>,
    failure: Option<UpstreamFailure>,
    /// Whether an address could not be reached since the last lookup, so the next lookup is due
    /// earlier.
    is_outdated: bool,
}

/// The address to which a request was last sent, shared with the task that waits for the response.
/// `None` before the first attempt.
#[derive(Debug, Default)]
pub(crate) struct Attempt(Mutex<Option<Arc<Endpoint>>>);

impl Group {
    fn new(upstreams: &[Upstream], settings: &Arc<Settings>) -> Self {
        let addresses = upstreams.iter().map(|one| Some((one, one.socket_address()?)));
        let fixed: Option<Vec<_>> = addresses.collect();
        let endpoints = fixed
            .iter()
            .flatten()
            .map(|(upstream, address)| Arc::new(Endpoint::new(upstream, *address, settings)));
        Self {
            upstreams: upstreams.to_vec(),
            settings: Arc::clone(settings),
            endpoints: ArcSwap::from_pointee(endpoints.collect()),
            lookups: fixed.is_none().then(Lookups::default),
            random: RandomSequence::default(),
        }
    }

    /// Sends `outgoing` to one of the group's addresses, which is stored in `attempt`, and returns
    /// the head of the response. A response that `expected` does not include is a failure of the
    /// address. The request is sent again in two cases only. Either no address received the
    /// request, or the request is idempotent and has no body, and the pooled connection that
    /// carried it was closed before the response began.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        outgoing: &mut Outgoing,
        expected: &ExpectedResponse,
        attempt: &Attempt,
    ) -> Result<Response<StreamedBody>, UpstreamFailure> {
        if let Some(lookups) = &self.lookups {
            // Boxed, because lookups are rare and need a large future.
            Box::pin(self.look_up(lookups)).await?;
        }
        let endpoints = self.endpoints.load_full();
        let mut tried: Vec<Arc<Endpoint>> = Vec::new();
        let mut links = Links::Idle;
        let mut endpoint =
            pick(&endpoints, &tried, &self.random).ok_or(UpstreamFailure::Unreachable)?;
        loop {
            attempt.begin(endpoint);
            let guard = endpoint.in_flight.begin();
            endpoint.begin();
            let answered = match expected.upgrade {
                None => endpoint.pool.exchange(outgoing, links).await,
                // Another protocol needs a connection of its own.
                Some(_) => Box::pin(endpoint.pool.exchange_once(outgoing)).await,
            };
            let Unanswered { failure, resend } = match answered {
                Err(unanswered) => unanswered,
                Ok(response) if !expected.includes(&response) => {
                    Unanswered::from(UpstreamFailure::InvalidResponse)
                }
                Ok(response) => {
                    self.finish(endpoint, is_failure(response.status()));
                    return Ok(response.map(|body| body.counted(guard)));
                }
            };
            match resend {
                Some(Resend::Closed) if links == Links::Idle => {
                    self.settings.upstream_metrics.count(Retry::Closed);
                    links = Links::New;
                }
                Some(Resend::NotConnected) => {
                    self.finish(endpoint, true);
                    self.mark_outdated();
                    tried.push(Arc::clone(endpoint));
                    if tried.len() > MAX_RETRIES {
                        return Err(failure);
                    }
                    let Some(other) = pick(&endpoints, &tried, &self.random) else {
                        return Err(failure);
                    };
                    self.settings.upstream_metrics.count(Retry::Connect);
                    endpoint = other;
                }
                _ => {
                    if outgoing.upload.fault().is_none() {
                        self.finish(endpoint, true);
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Records a failure of the address in `attempt`, because it did not respond in time.
    pub(crate) fn time_out(&self, attempt: &Attempt) {
        let endpoint = attempt.0.lock().take();
        if let Some(endpoint) = endpoint {
            self.finish(&endpoint, true);
        }
    }

    fn finish(&self, endpoint: &Arc<Endpoint>, is_failure: bool) {
        if !is_failure {
            return endpoint.succeed();
        }
        let now = Instant::now();
        let endpoints = self.endpoints.load();
        let mut others = endpoints.iter().filter(|one| !Arc::ptr_eq(one, endpoint));
        endpoint.fail(others.any(|one| one.is_in_use(now)));
    }

    /// Looks up the host names if no addresses are known yet or if the last lookup is too old. If
    /// no addresses are known, waits for the lookup and returns its error. Otherwise the lookup
    /// runs in the background, and the known addresses stay in use.
    async fn look_up(self: &Arc<Self>, lookups: &Lookups) -> Result<(), UpstreamFailure> {
        if self.endpoints.load().is_empty() {
            let _running = lookups.running.lock().await;
            if !self.endpoints.load().is_empty() {
                return Ok(());
            }
            if let Some(failure) = lookups.recent_failure() {
                return Err(failure);
            }
            return self.look_up_now(lookups).await;
        }
        if lookups.is_due()
            && let Ok(running) = Arc::clone(&lookups.running).try_lock_owned()
        {
            let group = Arc::clone(self);
            tokio::spawn(async move {
                let _running = running;
                if let Some(lookups) = &group.lookups {
                    // The failure is logged. The known addresses stay in use.
                    let _ = group.look_up_now(lookups).await;
                }
            });
        }
        Ok(())
    }

    async fn look_up_now(&self, lookups: &Lookups) -> Result<(), UpstreamFailure> {
        let mut endpoints: Vec<Arc<Endpoint>> = Vec::new();
        let mut failure = None;
        let known = self.endpoints.load_full();
        let limit = self.settings.timeouts.connect;
        for upstream in &self.upstreams {
            let of_upstream = |one: &&Arc<Endpoint>| one.upstream == *upstream;
            match self.settings.resolver.resolve(upstream, limit).await {
                Ok(addresses) => endpoints.extend(addresses.into_iter().map(|address| {
                    let known = known.iter().filter(of_upstream).find(|one| one.address == address);
                    known.cloned().unwrap_or_else(|| {
                        Arc::new(Endpoint::new(upstream, address, &self.settings))
                    })
                })),
                Err(error) => {
                    tracing::warn!(%upstream, %error, "cannot look up the upstream's host name");
                    failure = Some(to_failure(&error));
                    endpoints.extend(known.iter().filter(of_upstream).cloned());
                }
            }
        }
        *lookups.last.lock() = LastLookup { at: Some(Instant::now()), failure, is_outdated: false };
        if endpoints.is_empty() {
            return Err(failure.unwrap_or(UpstreamFailure::Unreachable));
        }
        self.endpoints.store(Arc::new(endpoints));
        Ok(())
    }

    fn mark_outdated(&self) {
        if let Some(lookups) = &self.lookups {
            lookups.last.lock().is_outdated = true;
        }
    }
}

impl Lookups {
    fn is_due(&self) -> bool {
        let last = self.last.lock();
        let every = if last.is_outdated { RESOLVE_PAUSE } else { RESOLVE_EVERY };
        last.at.is_none_or(|at| at.elapsed() >= every)
    }

    /// Returns the error of the last lookup, if that lookup failed less than [`RESOLVE_PAUSE`] ago.
    /// Otherwise returns `None`. Within this time, no new lookup is started.
    fn recent_failure(&self) -> Option<UpstreamFailure> {
        let last = self.last.lock();
        last.at.filter(|at| at.elapsed() < RESOLVE_PAUSE).and(last.failure)
    }
}

fn to_failure(error: &io::Error) -> UpstreamFailure {
    match error.kind() {
        io::ErrorKind::TimedOut => UpstreamFailure::ConnectTimeout,
        _ => UpstreamFailure::Unreachable,
    }
}

impl Attempt {
    fn begin(&self, endpoint: &Arc<Endpoint>) {
        *self.0.lock() = Some(Arc::clone(endpoint));
    }
}

impl Addresses for Group {
    fn statuses(&self, now: Instant) -> Vec<UpstreamStatus> {
        self.endpoints.load().iter().map(|endpoint| endpoint.status(now)).collect()
    }
}
