//! The host names of upstreams: the proxy follows the addresses of a name.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tollgate_proxy::{Resolver, Settings};

use crate::{
    setup::{Client, Proxy, exchange, statuses, within},
    upstream::Recorder,
    upstreams::unreachable,
};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A name server that the test changes.
#[derive(Clone, Default)]
struct Names {
    addresses: Arc<Mutex<Option<Vec<SocketAddr>>>>,
    lookups: Arc<AtomicUsize>,
}

impl Names {
    /// Sets the addresses of the name. `None` fails its lookups.
    fn set(&self, addresses: Option<&[SocketAddr]>) {
        *self.addresses.lock() = addresses.map(<[_]>::to_vec);
    }

    fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }

    fn settings(&self) -> Settings {
        let names = self.clone();
        let mut settings = Settings::new("http://backend.example:80".parse().expect("an upstream"));
        settings.resolver = Resolver::new(move |host, port| {
            assert_eq!((host, port), ("backend.example", 80));
            names.lookups.fetch_add(1, Ordering::SeqCst);
            let addresses = names.addresses.lock().clone();
            async { addresses.ok_or_else(|| io::Error::other("SERVFAIL")) }
        });
        settings
    }
}

/// Lets `seconds` pass for the proxy.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// Sends requests, of which none fails, until `recorder` alone receives 10 in a row.
async fn until_all_go_to(proxy: &Proxy, recorder: &Recorder) {
    within(async {
        let mut row = 0;
        while row < 10 {
            recorder.take();
            assert_eq!(statuses(&exchange(proxy.address, GET).await), [200]);
            row = if recorder.take().len() == 1 { row + 1 } else { 0 };
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_that_moves_is_followed_and_no_request_fails() {
    let (old, new) = (Recorder::start().await, Recorder::start().await);
    let names = Names::default();
    names.set(Some(&[old.address]));
    let proxy = Proxy::with(names.settings()).await;
    until_all_go_to(&proxy, &old).await;
    names.set(Some(&[new.address]));
    until_all_go_to(&proxy, &old).await;
    assert_eq!(names.lookups(), 1, "the name is not looked up again within 10 s");
    pass(11).await;
    until_all_go_to(&proxy, &new).await;
    assert_eq!(names.lookups(), 2);
}

#[tokio::test]
async fn a_connection_of_a_client_follows_the_name_too() {
    let (old, new) = (Recorder::start().await, Recorder::start().await);
    let names = Names::default();
    names.set(Some(&[old.address]));
    let proxy = Proxy::with(names.settings()).await;
    let mut client = Client::connect(proxy.address).await;
    for recorder in [&old, &new] {
        names.set(Some(&[recorder.address]));
        within(async {
            while recorder.take().is_empty() {
                client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
                assert_eq!(statuses(&client.read_response().await), [200]);
            }
        })
        .await;
        pass(11).await;
    }
}

#[tokio::test]
async fn all_addresses_of_a_name_are_used() {
    let recorders = [Recorder::start().await, Recorder::start().await, Recorder::start().await];
    let names = Names::default();
    names.set(Some(&recorders.each_ref().map(|one| one.address)));
    let proxy = Proxy::with(names.settings()).await;
    for _ in 0..60 {
        assert_eq!(statuses(&exchange(proxy.address, GET).await), [200]);
    }
    let shares = recorders.map(|one| one.take().len());
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(names.lookups(), 1);
}

#[tokio::test]
async fn known_addresses_stay_in_use_when_the_lookup_fails_or_finds_none() {
    let recorder = Recorder::start().await;
    let names = Names::default();
    names.set(Some(&[recorder.address]));
    let proxy = Proxy::with(names.settings()).await;
    until_all_go_to(&proxy, &recorder).await;
    for (addresses, lookups) in [(None, 2), (Some(&[][..]), 3)] {
        names.set(addresses);
        pass(11).await;
        until_all_go_to(&proxy, &recorder).await;
        assert_eq!(names.lookups(), lookups);
    }
}

#[tokio::test]
async fn a_name_with_a_dead_address_is_looked_up_again_after_a_second() {
    let recorder = Recorder::start().await;
    let names = Names::default();
    names.set(Some(&[unreachable().await]));
    let proxy = Proxy::with(names.settings()).await;
    assert_eq!(statuses(&exchange(proxy.address, GET).await), [502]);
    names.set(Some(&[recorder.address]));
    assert_eq!(statuses(&exchange(proxy.address, GET).await), [502]);
    assert_eq!(names.lookups(), 1);
    pass(2).await;
    // The lookup runs while this request is sent to the known address.
    exchange(proxy.address, GET).await;
    within(async {
        while names.lookups() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    until_all_go_to(&proxy, &recorder).await;
}

#[tokio::test]
async fn a_first_lookup_that_fails_is_repeated_after_a_second_and_no_earlier() {
    let recorder = Recorder::start().await;
    let names = Names::default();
    let proxy = Proxy::with(names.settings()).await;
    for _ in 0..5 {
        let answer = exchange(proxy.address, GET).await;
        assert_eq!(statuses(&answer), [502]);
        assert!(!answer.contains("SERVFAIL"), "{answer}");
    }
    assert_eq!(names.lookups(), 1);
    names.set(Some(&[recorder.address]));
    pass(2).await;
    until_all_go_to(&proxy, &recorder).await;
    assert_eq!(names.lookups(), 2);
}

#[tokio::test]
async fn a_lookup_without_an_end_is_a_504() {
    let mut settings = Names::default().settings();
    settings.timeouts.connect = Duration::from_millis(50);
    settings.resolver = Resolver::new(|_, _| std::future::pending());
    let proxy = Proxy::with(settings).await;
    assert_eq!(statuses(&exchange(proxy.address, GET).await), [504]);
}
