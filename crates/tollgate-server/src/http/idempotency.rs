//! Idempotency keys: a repeated request gets the same response and is charged once.
//!
//! The table is written by hand, because caches such as `moka` and `quick_cache` evict an entry
//! when they are full. A repeated request with an evicted entry would be charged twice. This table
//! holds 10,000 keys and refuses a request with a further key instead. A cache would also need the
//! bound for each caller and the bound in bytes, so a cache would replace only 20 of the 80 lines of
//! the table.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, header};
use tokio::sync::watch;
use tokio::time::timeout;
use tollgate::model::time::DEFAULT_SKEW_MAX;
use tollgate::model::{KeyedHash, Millis, Store, Timestamp};
use tollgate::{HashKey, Limiter, trace};

use super::auth::bearer_token;
use super::problem::{Kind, Problem};
use super::respond::Answer;
use crate::access::Access;
use crate::http_connection::Peer;

/// The header field of the key.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 64;

/// The time for which a response is kept, measured from its request.
pub const REMEMBERED_FOR: Millis = Millis::from_secs(60);

/// The most responses that are kept at once.
pub const MAX_REMEMBERED: usize = 10_000;

/// The most responses that are kept for one caller, so one caller cannot use up [`MAX_REMEMBERED`]
/// alone. A caller is a token of the listener, otherwise a client certificate, otherwise an IPv4
/// address or a /64 network of IPv6. On this machine, callers with neither token nor certificate
/// have no such bound.
pub const MAX_REMEMBERED_PER_CALLER: usize = 2_500;

/// The most bytes of all kept responses and their keys. If a response would exceed this number, the
/// response is not kept, but its key is.
pub const MAX_REMEMBERED_BYTES: usize = 16 * 1024 * 1024;

/// The bytes that are counted for a pending response until its size is known.
const EXPECTED_BYTES: usize = 1024;

/// The longest time that a repeated request waits for a pending response.
const WAIT: Duration = Duration::from_secs(5);

/// Whether a response is new or a stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseOrigin {
    New,
    Replayed,
}

/// The recent responses of this process, by their idempotency keys. Other processes do not share
/// these responses.
pub(super) struct IdempotencyCache {
    table: Arc<Mutex<Table>>,
    /// A random key of this process. The digests that are made with the key never leave the
    /// process.
    digest: HashKey,
}

impl Default for IdempotencyCache {
    fn default() -> Self {
        Self { table: Arc::default(), digest: HashKey::random() }
    }
}

/// The digest of a client certificate. The digest has the key of its [`IdempotencyCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 16]);

/// The caller of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallerId {
    /// The digest of everything that distinguishes callers, verified or not. Callers with different
    /// digests have separate keys.
    scope: [u8; 16],
    /// The digest of what a caller cannot invent. The keys of all scopes with the same digest
    /// together have the bound [`MAX_REMEMBERED_PER_CALLER`]. `None` for callers on this machine,
    /// which have no such bound.
    bound: Option<[u8; 16]>,
}

impl IdempotencyCache {
    /// Returns the fingerprint of a client certificate in DER form.
    pub(super) fn fingerprint(&self, certificate: &[u8]) -> Fingerprint {
        Fingerprint(self.digest.hash(certificate))
    }

    /// Returns the caller of a request with the header fields `headers`, on a connection from `peer`
    /// with the client certificate `certificate`. If `access` has tokens, the caller has one of
    /// them. Otherwise this listener does not verify the field `authorization`, but another layer of
    /// the program may do so. The field then separates the keys, and invented values of it gain no
    /// further keys. The address counts only for a caller with neither token nor certificate.
    pub(super) fn caller(
        &self,
        access: &Access,
        headers: &HeaderMap,
        certificate: Option<Fingerprint>,
        peer: Option<Peer>,
    ) -> CallerId {
        if let Access::Tokens(_) = access {
            let Fingerprint(certificate) = certificate.unwrap_or(Fingerprint([0; 16]));
            let token = bearer_token(headers).unwrap_or_default();
            let scope = self.digest.hash(&[&certificate[..], token].concat());
            return CallerId { scope, bound: Some(scope) };
        }
        let address = peer.and_then(|Peer(address)| Some(address?.ip().to_canonical()));
        let address = address.filter(|address| !address.is_loopback());
        let (one, bound) = match (certificate, address) {
            (Some(Fingerprint(certificate)), _) => (certificate, Some(certificate)),
            (None, Some(IpAddr::V4(address))) => {
                let one = self.digest.hash(&address.octets());
                (one, Some(one))
            }
            // One machine can use all addresses of a /64, which can also be the network of several
            // machines.
            (None, Some(IpAddr::V6(address))) => {
                let octets = address.octets();
                (self.digest.hash(&octets), Some(self.digest.hash(&octets[..8])))
            }
            (None, None) => ([0; 16], None),
        };
        let mut name = one.to_vec();
        for line in headers.get_all(header::AUTHORIZATION) {
            // A value of a field contains no line break.
            name.extend_from_slice(line.as_bytes());
            name.push(b'\n');
        }
        CallerId { scope: self.digest.hash(&name), bound }
    }

    /// Returns the response of `execute`, or the stored response to an earlier request of `caller`
    /// with the same key. Returns a problem instead if the earlier request differs from `request`,
    /// which consists of the path and the body, if its response was not kept, or if the table has no
    /// room for another key.
    ///
    /// `execute` runs to its end in a task of `limiter`, even if the client disconnects. The spans
    /// of the task belong to the trace of the caller.
    pub(super) async fn once<S, F>(
        &self,
        limiter: &Limiter<S>,
        caller: CallerId,
        key: Key,
        request: [&[u8]; 2],
        execute: impl FnOnce() -> F,
    ) -> (Answer, ResponseOrigin)
    where
        S: Store,
        F: Future<Output = Answer> + Send + 'static,
    {
        let now = limiter.now();
        let digest = self.digest_of(request);
        let key = ScopedKey { scope: caller.scope, key };
        let (sender, answered) = watch::channel(None);
        match self.with(|table| table.find_or_begin(now, &key, digest, caller.bound, &answered)) {
            Lookup::New => {}
            Lookup::Same(before) => return (wait_for(before).await, ResponseOrigin::Replayed),
            Lookup::Refused(problem) => return (Err(problem), ResponseOrigin::New),
        }
        let (table, future) = (Arc::clone(&self.table), execute());
        limiter.spawn(trace::instrument(async move {
            let answer = future.await;
            let bytes = answer.as_ref().map_or_else(Problem::size, Bytes::len);
            lock(&table, |table| table.complete(&key, digest, bytes));
            sender.send_replace(Some(answer));
        }));
        (wait_for(answered).await, ResponseOrigin::New)
    }

    fn digest_of(&self, [route, body]: [&[u8]; 2]) -> [u8; 16] {
        self.digest.hash(&[route, b"\n", body].concat())
    }

    fn with<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        lock(&self.table, change)
    }
}

fn lock<T>(table: &Mutex<Table>, change: impl FnOnce(&mut Table) -> T) -> T {
    // Nothing panics while the lock is held, so a poisoned lock is still consistent.
    change(&mut table.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn wait_for(mut answered: watch::Receiver<Option<Answer>>) -> Answer {
    match timeout(WAIT, answered.wait_for(Option::is_some)).await {
        Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(unfinished())),
        Ok(Err(_)) | Err(_) => Err(unfinished()),
    }
}

fn unfinished() -> Problem {
    Problem::new(
        Kind::Internal,
        "the first request with this key has not finished and may have been charged: send it again \
         with the same key",
    )
}

/// An idempotency key, which the client chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(Box<[u8]>);

/// An idempotency key with the scope of its [caller](CallerId). Two callers may therefore use the
/// same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ScopedKey {
    scope: [u8; 16],
    key: Key,
}

impl Key {
    /// Returns the key of a request, if it has one.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        let key = line.as_bytes();
        let is_key = (1..=MAX_KEY_BYTES).contains(&key.len())
            && key.iter().all(u8::is_ascii_graphic)
            && lines.next().is_none();
        if is_key {
            return Ok(Some(Self(key.into())));
        }
        let detail = format!("send one key of 1 to {MAX_KEY_BYTES} visible ASCII characters");
        Err(Problem::new(Kind::InvalidIdempotencyKey, detail))
    }
}

#[derive(Default)]
struct Table {
    entries: HashMap<ScopedKey, Entry>,
    /// The keys in the order of arrival, which is also the order of expiry.
    order: VecDeque<(Timestamp, ScopedKey)>,
    bytes: usize,
    /// The number of entries of each [bound](CallerId::bound) that has at least one entry.
    callers: HashMap<[u8; 16], usize>,
}

struct Entry {
    request: [u8; 16],
    /// The [bound](CallerId::bound) of the caller.
    bound: Option<[u8; 16]>,
    /// The response, or `None` if it was not kept.
    answered: Option<watch::Receiver<Option<Answer>>>,
    bytes: usize,
}

enum Lookup {
    New,
    Same(watch::Receiver<Option<Answer>>),
    Refused(Problem),
}

impl Table {
    fn find_or_begin(
        &mut self,
        now: Timestamp,
        key: &ScopedKey,
        request: [u8; 16],
        bound: Option<[u8; 16]>,
        answered: &watch::Receiver<Option<Answer>>,
    ) -> Lookup {
        self.forget_expired(now);
        if let Some(entry) = self.entries.get(key) {
            if entry.request != request {
                let detail = "this key was used for another request within the last minute: use a \
                    new key";
                return Lookup::Refused(Problem::new(Kind::IdempotencyKeyReused, detail));
            }
            let Some(answered) = &entry.answered else {
                let detail = "the first request with this key was executed, and nothing is charged \
                    again, but its response was too large to be kept";
                return Lookup::Refused(Problem::new(Kind::ResponseNotKept, detail));
            };
            return Lookup::Same(answered.clone());
        }
        let bytes = key.key.0.len() + EXPECTED_BYTES;
        // Evicting an unexpired response would charge its repetition twice, so the new request is
        // refused.
        let known = bound.and_then(|bound| self.callers.get(&bound)).copied().unwrap_or_default();
        if known >= MAX_REMEMBERED_PER_CALLER
            || self.entries.len() >= MAX_REMEMBERED
            || self.bytes + bytes > MAX_REMEMBERED_BYTES
        {
            let detail = "too many idempotency keys were used within the last minute: try again \
                later";
            return Lookup::Refused(Problem::new(Kind::TooManyIdempotencyKeys, detail));
        }
        self.bytes += bytes;
        if let Some(bound) = bound {
            *self.callers.entry(bound).or_default() += 1;
        }
        self.order.push_back((now.after(REMEMBERED_FOR), key.clone()));
        let answered = Some(answered.clone());
        self.entries.insert(key.clone(), Entry { request, bound, answered, bytes });
        Lookup::New
    }

    /// Replaces the estimate [`EXPECTED_BYTES`] of a pending response by its size `bytes`. If there
    /// is no room for the response, only its key is kept. `request` is the hash of the response's
    /// request. If the entry of `key` belongs to another request, nothing changes.
    fn complete(&mut self, key: &ScopedKey, request: [u8; 16], bytes: usize) {
        // The entry may have expired, and another request may use the same key.
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.request != request {
            return;
        }
        self.bytes -= entry.bytes;
        entry.bytes = key.key.0.len() + bytes;
        if self.bytes + entry.bytes > MAX_REMEMBERED_BYTES {
            entry.bytes = key.key.0.len();
            entry.answered = None;
        }
        self.bytes += entry.bytes;
    }

    fn forget_one_of(&mut self, bound: [u8; 16]) {
        if let Some(known) = self.callers.get_mut(&bound) {
            *known -= 1;
            if *known == 0 {
                self.callers.remove(&bound);
            }
        }
    }

    fn forget_expired(&mut self, now: Timestamp) {
        // If the clock was set back, the entries with a later expiry than a new entry are forgotten
        // too. Otherwise these entries, and all entries after them, would stay until the clock has
        // caught up, and the full table would refuse further keys.
        let latest = now.after(REMEMBERED_FOR).after(DEFAULT_SKEW_MAX);
        let is_over = |expires_at: Timestamp| expires_at <= now || expires_at > latest;
        while self.order.front().is_some_and(|(expires_at, _)| is_over(*expires_at)) {
            let Some((_, key)) = self.order.pop_front() else { return };
            if let Some(entry) = self.entries.remove(&key) {
                self.bytes -= entry.bytes;
                if let Some(bound) = entry.bound {
                    self.forget_one_of(bound);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use tokio::sync::Barrier;
    use tollgate::store::Memory;

    use super::*;

    /// The bug: the size of a response counted only after the response was kept, so many responses
    /// at once could exceed the bound.
    #[tokio::test]
    async fn large_responses_at_once_exceeded_the_bound() {
        const LARGE: usize = MAX_REMEMBERED_BYTES / 16;
        let policy = "limits: { all: { quota: 1, window: 1h } }\nrules: [{ limits: all }]\n";
        let policy = tollgate_policy::parse("test.yaml", policy).unwrap().policy;
        let (limiter, cache) =
            (Limiter::new(policy, Memory::default()), IdempotencyCache::default());
        let pending = Arc::new(Barrier::new(20));
        let send = async |number: u8| {
            let (key, pending) = (Key([number].into()), Arc::clone(&pending));
            let execute = || async move {
                pending.wait().await;
                Ok(Bytes::from(vec![b'x'; LARGE]))
            };
            let caller = CallerId { scope: [0; 16], bound: None };
            cache.once(&limiter, caller, key, [&b"/"[..], b"{}"], execute).await
        };
        let first = join_all((0..20).map(&send)).await;
        assert!(first.iter().all(|(answer, _)| answer.as_ref().unwrap().len() == LARGE));
        assert!(cache.with(|table| table.bytes) <= MAX_REMEMBERED_BYTES);
        let again = join_all((0..20).map(&send)).await;
        let kept = again
            .iter()
            .filter(|(answer, origin)| answer.is_ok() && *origin == ResponseOrigin::Replayed);
        assert_eq!(kept.count(), 15);
        let lost = again.iter().filter_map(|(answer, _)| answer.as_ref().err());
        assert!(lost.map(Problem::status).eq([axum::http::StatusCode::CONFLICT; 5]));
    }
}
