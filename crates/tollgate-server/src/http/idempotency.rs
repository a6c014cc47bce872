//! Idempotency keys: a repeated request gets the same answer, and is charged once.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName};
use tokio::sync::watch;
use tokio::time::timeout;
use tollgate::HashKey;
use tollgate::core::{KeyedHash, Millis, Timestamp};

use super::problem::{Kind, Problem};
use super::respond::Answer;

/// The header field.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 64;

/// How long an answer is remembered, from when it was asked.
pub const REMEMBERED_FOR: Millis = Millis::from_secs(60);

/// The most answers that are remembered at once.
pub const MAX_REMEMBERED: usize = 10_000;

/// The most answers that are remembered for one token: a caller must not take the places of all others.
pub const MAX_REMEMBERED_PER_TOKEN: usize = 2_500;

/// The most bytes that they have together.
pub const MAX_REMEMBERED_BYTES: usize = 16 * 1024 * 1024;

/// What an answer that is still under way counts for among them.
const EXPECTED_BYTES: usize = 1024;

/// How long a repetition waits for an answer that is under way.
const WAIT: Duration = Duration::from_secs(5);

/// Whether an answer is the first, or one that was given before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseOrigin {
    Fresh,
    Replayed,
}

/// The answers that this process gave lately, by their keys. Another process knows nothing of them.
pub(super) struct IdempotencyCache {
    table: Arc<Mutex<Table>>,
    /// Of this process only: a digest never leaves it.
    digest: HashKey,
}

impl Default for IdempotencyCache {
    fn default() -> Self {
        Self { table: Arc::default(), digest: HashKey::random() }
    }
}

impl IdempotencyCache {
    /// The answer of `carry_out`, or the one that it had before under the same key of whoever shows
    /// this token.
    ///
    /// It is carried out to its end also if the client goes away meanwhile.
    pub(super) async fn once<F>(
        &self,
        now: Timestamp,
        token: Option<&[u8]>,
        key: Key,
        request: [&[u8]; 2],
        carry_out: impl FnOnce() -> F,
    ) -> (Answer, ResponseOrigin)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let digest = self.digest_of(request);
        let whose = self.digest.hash(token.unwrap_or_default());
        let key = ScopedKey { whose, key };
        let most = if token.is_some() { MAX_REMEMBERED_PER_TOKEN } else { MAX_REMEMBERED };
        let (sender, answered) = watch::channel(None);
        match self.with(|table| table.find_or_begin(now, &key, digest, most, &answered)) {
            Lookup::New => {}
            Lookup::Same(before) => return (wait_for(before).await, ResponseOrigin::Replayed),
            Lookup::Refused(problem) => return (Err(problem), ResponseOrigin::Fresh),
        }
        let (table, future) = (Arc::clone(&self.table), carry_out());
        tokio::spawn(async move {
            let answer = future.await;
            let bytes = answer.as_ref().map_or(0, Bytes::len);
            lock(&table, |table| table.grow(&key, digest, bytes));
            sender.send_replace(Some(answer));
        });
        (wait_for(answered).await, ResponseOrigin::Fresh)
    }

    fn digest_of(&self, [route, body]: [&[u8]; 2]) -> [u8; 16] {
        self.digest.hash(&[route, b"\n", body].concat())
    }

    fn with<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        lock(&self.table, change)
    }
}

fn lock<T>(table: &Mutex<Table>, change: impl FnOnce(&mut Table) -> T) -> T {
    // Nothing panics while it holds the lock.
    change(&mut table.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn wait_for(mut answered: watch::Receiver<Option<Answer>>) -> Answer {
    match timeout(WAIT, answered.wait_for(Option::is_some)).await {
        Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(unfinished())),
        Ok(Err(_)) | Err(_) => Err(unfinished()),
    }
}

fn unfinished() -> Problem {
    Problem::new(Kind::Internal, "it is not known whether this was charged; ask again")
}

/// A key that a client chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(Box<[u8]>);

/// A key, and whose it is: two clients with tokens of their own may number their requests alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ScopedKey {
    whose: [u8; 16],
    key: Key,
}

impl Key {
    /// The key of a request, if it has one.
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
    /// In the order in which they expire, which is that in which they came.
    order: VecDeque<(Timestamp, ScopedKey)>,
    bytes: usize,
    /// The number of entries of each caller that has one.
    callers: HashMap<[u8; 16], usize>,
}

struct Entry {
    request: [u8; 16],
    answered: watch::Receiver<Option<Answer>>,
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
        most: usize,
        answered: &watch::Receiver<Option<Answer>>,
    ) -> Lookup {
        self.forget_expired(now);
        if let Some(entry) = self.entries.get(key) {
            return if entry.request == request {
                Lookup::Same(entry.answered.clone())
            } else {
                let detail = "another request had this key within the last minute: use a new one";
                Lookup::Refused(Problem::new(Kind::IdempotencyKeyReused, detail))
            };
        }
        let bytes = key.key.0.len() + EXPECTED_BYTES;
        // To forget one that is in force would charge its repetition twice.
        let known = self.callers.get(&key.whose).copied().unwrap_or_default();
        if known >= most
            || self.entries.len() >= MAX_REMEMBERED
            || self.bytes + bytes > MAX_REMEMBERED_BYTES
        {
            let detail = "too many requests had a key within the last minute: ask again later";
            return Lookup::Refused(Problem::new(Kind::TooManyIdempotencyKeys, detail));
        }
        self.bytes += bytes;
        *self.callers.entry(key.whose).or_default() += 1;
        self.order.push_back((now.after(REMEMBERED_FOR), key.clone()));
        self.entries.insert(key.clone(), Entry { request, answered: answered.clone(), bytes });
        Lookup::New
    }

    /// Counts the bytes of an answer that has come.
    fn grow(&mut self, key: &ScopedKey, request: [u8; 16], bytes: usize) {
        // It may have expired meanwhile, and its key be another request's.
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.request == request {
            let grown = bytes.saturating_sub(EXPECTED_BYTES);
            entry.bytes += grown;
            self.bytes += grown;
        }
    }

    fn forget_one_of(&mut self, whose: [u8; 16]) {
        if let Some(known) = self.callers.get_mut(&whose) {
            *known -= 1;
            if *known == 0 {
                self.callers.remove(&whose);
            }
        }
    }

    fn forget_expired(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(expires_at, _)| *expires_at <= now) {
            let Some((_, key)) = self.order.pop_front() else { return };
            if let Some(entry) = self.entries.remove(&key) {
                self.bytes -= entry.bytes;
                self.forget_one_of(key.whose);
            }
        }
    }
}
