//! A name that leads elsewhere after a failover, and a resolver that is slow, fails or knows nothing.

use std::io;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{Algorithm, Ask, Charge, ChargeId, Cost, Limit, Millis, Subject, Value};
use tollgate_redis::{
    Choice, Endpoint, Keys, LinkLimits, Looked, Lookup, Names, RedisShard, ShardSettings,
};

use super::*;

/// The name that the shard is known by, which no resolver but the test's own has heard of.
const NAME: &str = "redis://limits.invalid";

/// What the resolver says.
#[derive(Clone, Debug)]
enum Word {
    Leads(u16),
    Fails,
    Nothing,
    Never,
}

#[derive(Debug)]
struct Resolver(Mutex<Word>);

impl Lookup for Resolver {
    fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> Looked<'a> {
        let word = self.0.lock().clone();
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

/// A store on what the name leads to.
fn open(resolver: &Arc<Resolver>) -> RedisShard {
    let names = Names::by(Arc::clone(resolver) as Arc<dyn Lookup>);
    let endpoint: Endpoint = NAME.parse().unwrap();
    let mut settings = ShardSettings::new(endpoint.with_names(names));
    settings.link = LinkLimits { proof: PATIENCE, seek: PATIENCE, ..LinkLimits::default() };
    RedisShard::open(&settings, Keys::new(PlainHash), Choice::Best)
}

fn limit() -> Limit {
    let window = FixedWindow::new(100, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

/// How much is used once another unit is, asked for until it is answered.
async fn takes(store: &RedisShard) -> u64 {
    let (limit, subject) = (limit(), Subject::new([("user", Value::Clear(b"one"))], &PlainHash));
    let ask = Ask::Take { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &limit, subject: &subject, ask };
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
    let resolver = Arc::new(Resolver(Mutex::new(Word::Leads(first.port()))));
    let store = open(&resolver);
    assert_eq!([takes(&store).await, takes(&store).await], [1, 2]);
    *resolver.0.lock() = Word::Leads(second.port());
    assert_eq!(takes(&store).await, 3, "a connection that works is kept");
    first.kill();
    assert_eq!(takes(&store).await, 1, "the second server has counted nothing");
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_whatever_becomes_of_the_resolver() {
    for word in [Word::Fails, Word::Nothing, Word::Never] {
        let mut server = Server::start().await;
        let resolver = Arc::new(Resolver(Mutex::new(Word::Leads(server.port()))));
        let store = open(&resolver);
        assert_eq!(takes(&store).await, 1);
        *resolver.0.lock() = word.clone();
        server.kill();
        server.start_again(&[]);
        assert_eq!(takes(&store).await, 1, "{word:?}");
    }
}

#[tokio::test]
async fn a_resolver_that_never_answers_keeps_nobody_beyond_the_deadline() {
    let resolver = Arc::new(Resolver(Mutex::new(Word::Never)));
    let store = open(&resolver);
    let (limit, subject) = (limit(), Subject::new([("user", Value::Clear(b"one"))], &PlainHash));
    let ask = Ask::Take { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &limit, subject: &subject, ask };
    let told = tokio::time::timeout(PATIENCE, store.apply_within(NOW, &[charge], SHORT)).await;
    told.expect("an answer in time").unwrap_err();
    let server = Server::start().await;
    *resolver.0.lock() = Word::Leads(server.port());
    assert_eq!(takes(&store).await, 1, "it is found as soon as the resolver knows it");
}
