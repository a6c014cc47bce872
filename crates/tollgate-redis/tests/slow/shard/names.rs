//! A host name with a new address after a failover, and a resolver that is slow, fails or finds
//! nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_conformance::{Figure, PlainHash, assert_held};
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Subject, Value};
use tollgate_redis::{
    Endpoint, Keys, LinkLimits, Lookup, LookupResult, NameResolver, RedisShard, RuntimeChoice,
    ShardSettings,
};

use super::*;

/// The shard's host name, which only the test's resolver can resolve.
const NAME: &str = "redis://limits.invalid";

/// The result of a lookup.
#[derive(Clone, Debug)]
enum Word {
    Leads(u16),
    Fails,
    Nothing,
    Never,
}

/// A resolver that counts the lookups since its result was last changed.
#[derive(Debug)]
struct Resolver {
    word: Mutex<Word>,
    lookups: AtomicU64,
}

impl Resolver {
    fn leads(port: u16) -> Arc<Self> {
        Self::scripted(Word::Leads(port))
    }

    fn scripted(word: Word) -> Arc<Self> {
        Arc::new(Self { word: Mutex::new(word), lookups: AtomicU64::new(0) })
    }

    fn turn(&self, word: Word) {
        *self.word.lock() = word;
        self.lookups.store(0, Ordering::SeqCst);
    }

    fn lookups(&self) -> u64 {
        self.lookups.load(Ordering::SeqCst)
    }
}

impl Lookup for Resolver {
    fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> LookupResult<'a> {
        let word = self.word.lock().clone();
        self.lookups.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match word {
                Word::Leads(port) => Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]),
                Word::Fails => Err(io::Error::other("SERVFAIL")),
                Word::Nothing => Ok(Vec::new()),
                Word::Never => std::future::pending().await,
            }
        })
    }
}

/// Opens a store at the address that the name resolves to.
fn open(resolver: &Arc<Resolver>) -> RedisShard {
    let names = NameResolver::by(Arc::clone(resolver) as Arc<dyn Lookup>);
    let endpoint: Endpoint = NAME.parse().unwrap();
    let mut settings = ShardSettings::new(endpoint.with_resolver(names));
    settings.link = LinkLimits { proof: PATIENCE, seek: PATIENCE, ..LinkLimits::default() };
    RedisShard::open(&settings, Keys::new(PlainHash), RuntimeChoice::Best)
}

fn limit() -> Limit {
    let window = FixedWindow::new(100, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

/// Charges one unit, and tries again until a call is answered. Returns the used units.
async fn takes(store: &RedisShard) -> u64 {
    let (limit, subject) = (limit(), Subject::new([("user", Value::Clear(b"one"))], &PlainHash));
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &limit, subject: &subject, operation };
    let answered = async {
        loop {
            match store.apply_within(NOW, &[charge], PATIENCE).await {
                Ok(readings) => break readings[0].used,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("it answers")
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_is_followed_once_its_server_is_lost() {
    let (mut first, second) = (Server::start().await, Server::start().await);
    let resolver = Resolver::leads(first.port());
    let store = open(&resolver);
    assert_eq!([takes(&store).await, takes(&store).await], [1, 2]);
    resolver.turn(Word::Leads(second.port()));
    let kept = takes(&store).await;
    first.kill();
    assert_eq!(takes(&store).await, 1, "the second server has counted nothing");
    assert_held(&[
        Figure::fault_seen("times that the name was asked for anew", resolver.lookups()),
        Figure::at_most("units lost while the connection worked", 3 - kept, 0),
    ]);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_whatever_becomes_of_the_resolver() {
    for word in [Word::Fails, Word::Nothing, Word::Never] {
        let mut server = Server::start().await;
        let resolver = Resolver::leads(server.port());
        let store = open(&resolver);
        assert_eq!(takes(&store).await, 1);
        resolver.turn(word.clone());
        server.kill();
        // The first attempts get the address of the process that was killed.
        until(|| resolver.lookups() > 0).await;
        server.start_again(&[]);
        let used = takes(&store).await;
        assert_held(&[
            Figure::fault_seen("questions to a resolver that knows nothing", resolver.lookups()),
            Figure::at_most("units of a server other than the last", used.abs_diff(1), 0),
        ]);
    }
}

#[tokio::test]
async fn a_resolver_that_never_answers_keeps_nobody_beyond_the_deadline() {
    let resolver = Resolver::scripted(Word::Never);
    let store = open(&resolver);
    let (limit, subject) = (limit(), Subject::new([("user", Value::Clear(b"one"))], &PlainHash));
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &limit, subject: &subject, operation };
    let result = tokio::time::timeout(PATIENCE, store.apply_within(NOW, &[charge], SHORT)).await;
    assert_held(&[
        Figure::fault_seen("questions that are never answered", resolver.lookups()),
        Figure::at_most("callers kept beyond the deadline", result.is_err().into(), 0),
        Figure::at_most(
            "units admitted without a server",
            result.is_ok_and(|result| result.is_ok()).into(),
            0,
        ),
    ]);
    let server = Server::start().await;
    resolver.turn(Word::Leads(server.port()));
    assert_eq!(takes(&store).await, 1, "it is found as soon as the resolver knows it");
}
