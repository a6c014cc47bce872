//! A listener over a store, and a client that sends and receives bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::model::policy::{
    Dimension, LimitBinding, MatchMode, OnFailure, ResponseSettings, SubjectSource,
};
use tollgate::model::{Algorithm, Limit, Millis, Policy, Store, Timestamp};
use tollgate::observe::Histogram;
use tollgate::store::memory::Memory;
use tollgate::{HashKey, Limiter, ManualClock};
use tollgate_server::{
    Access, ConnectionLimits, DrainTimeout, Listener, Port, RespListener, RespSettings, Served,
    Tokens, serve,
};

/// The longest time that a test waits for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The most clients of a listener.
pub(crate) const AT_ONCE: u32 = 64;

/// The start time of tests.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A valid token.
pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A listener that serves until it is dropped.
pub(crate) struct Open {
    pub(crate) address: String,
    pub(crate) clock: Arc<ManualClock>,
    /// The recorded durations of decisions.
    pub(crate) latency: Arc<Histogram>,
    end: Option<oneshot::Sender<()>>,
    ended: Option<oneshot::Receiver<Result<(), DrainTimeout>>>,
    _runtime: Runtime,
}

impl Open {
    /// Opens a listener with an empty memory store.
    pub(crate) fn new() -> Self {
        Self::over(Memory::default(), RespSettings::default())
    }

    /// Opens a listener that requires [`TOKEN`].
    pub(crate) fn with_token() -> Self {
        let access = Access::Tokens(Tokens::parse(TOKEN).unwrap());
        Self::over(Memory::default(), RespSettings { access, ..RespSettings::default() })
    }

    /// Opens a listener whose buckets use `on_failure` if `store` does not answer.
    pub(crate) fn failing(store: impl Store + 'static, on_failure: OnFailure) -> Self {
        let answers = ResponseSettings { on_failure, ..ResponseSettings::default() };
        Self::by(policy().with_answers(answers), store, RespSettings::default())
    }

    /// Opens a listener over `store`.
    pub(crate) fn over(store: impl Store + 'static, settings: RespSettings) -> Self {
        Self::by(policy(), store, settings)
    }

    fn by(policy: Policy, store: impl Store + 'static, settings: RespSettings) -> Self {
        let runtime = Runtime::new().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(policy, store)
            .with_key(HashKey::from_secret(b"of the tests"))
            .with_clock(Arc::clone(&clock));
        let (end, printed) = oneshot::channel();
        let (sender, ended) = oneshot::channel();
        let inside = runtime.enter();
        let listener = Listener::open(&"127.0.0.1:0".parse().unwrap(), Port::Exclusive).unwrap();
        let address = listener.local_address().unwrap();
        let limits = ConnectionLimits { at_once: AT_ONCE, ..settings.limits };
        let endpoint = RespListener::new(Arc::new(limiter), settings);
        let latency = endpoint.latency();
        let served = Served::new("resp", listener, limits, endpoint);
        runtime.spawn(async move {
            let printed = async { printed.await.unwrap_or(()) };
            let _ = sender.send(serve(vec![served], PATIENCE, printed).await);
        });
        drop(inside);
        Self { address, clock, latency, end: Some(end), ended: Some(ended), _runtime: runtime }
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream }
    }

    /// Sends `described`, closes the sending half, and returns all replies.
    pub(crate) fn printed(&self, described: impl AsRef<[u8]>) -> String {
        let client = self.client();
        client.send_line(described);
        client.rest()
    }

    /// Starts the shutdown of the listener.
    pub(crate) fn end(&mut self) {
        drop(self.end.take());
    }

    /// Waits until the shutdown is complete.
    pub(crate) fn ended(mut self) -> Result<(), DrainTimeout> {
        self.ended.take().unwrap().blocking_recv().unwrap()
    }
}

/// A client of the listener.
pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) fn send_line(&self, bytes: impl AsRef<[u8]>) {
        // The listener may have closed already. Then its last reply shows the reason.
        let _ = (&self.stream).write_all(bytes.as_ref());
    }

    /// Reads as many bytes as `expected` has, and compares them.
    pub(crate) fn receive_reply(&self, expected: &str) {
        let mut received = vec![0; expected.len()];
        (&self.stream)
            .read_exact(&mut received)
            .unwrap_or_else(|error| panic!("{expected}: {error}"));
        assert_eq!(shown(&received), shown(expected.as_bytes()));
    }

    /// Closes the sending half, and reads until the listener closes.
    pub(crate) fn rest(&self) -> String {
        let _ = self.stream.shutdown(Shutdown::Write);
        self.until_closed()
    }

    /// Reads until the listener closes.
    pub(crate) fn until_closed(&self) -> String {
        let mut received = Vec::new();
        (&self.stream).read_to_end(&mut received).expect("the listener closes without a reset");
        shown(&received)
    }
}

/// Formats bytes as one line, with each line break as `|`.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "|")
}

/// Encodes a command as clients do.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

/// `core`: 3 a minute for each token. `all`: 5 a minute for all clients together. `area`: 2 for
/// each network. `running`: 1 at a time for each token.
fn policy() -> Policy {
    let token = SubjectSource::Credential { header: "authorization".into() };
    let area = SubjectSource::ClientAddress { ipv4_prefix: 24, ipv6_prefix: 64 };
    let dimension = |name: &str, source| Dimension { name: name.into(), source };
    let limit = |name: &str, quota, per: &[usize]| {
        let window = FixedWindow::new(quota, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
        let limit = Limit::new(name, Algorithm::FixedWindow(window)).unwrap();
        LimitBinding { limit: Arc::new(limit), per: per.to_vec() }
    };
    let running = Algorithm::Concurrency(Concurrency::new(1, Millis::from_secs(60)).unwrap());
    let running = Arc::new(Limit::new("running", running).unwrap());
    let running = LimitBinding { limit: running, per: vec![0] };
    Policy::new(
        vec![dimension("token", token), dimension("address", area)],
        vec![limit("core", 3, &[0]), limit("all", 5, &[]), limit("area", 2, &[1]), running],
        vec![],
        MatchMode::FirstMatch,
    )
    .unwrap()
}
