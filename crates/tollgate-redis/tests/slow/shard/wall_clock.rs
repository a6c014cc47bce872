//! Servers with wrong wall clocks. Nodes decide by their own clocks. A server's clock only
//! determines when the server expires a key.

use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::Topology;

use super::*;
use crate::kit::{QUICK, WallClock, on_every_version};

const QUOTA: u64 = 5;
const CLIENTS: u64 = 20;
const MINUTE: i64 = 60 * 1_000;
const DAY: i64 = 24 * 60 * MINUTE;

on_every_version! {
    a_clock_that_is_wrong_changes_no_answer
    a_clock_that_steps_costs_no_window_that_runs_on
    a_replica_in_another_time_loses_no_window_unless_it_is_ahead
}

async fn a_clock_that_is_wrong_changes_no_answer(version: Version) {
    for (way, off) in ways(version).flat_map(|way| [(way, DAY), (way, -DAY)]) {
        let (clock, right) = (WallClock::new(), way.start(version, &[]).await);
        let wrong = start_by(version, &clock, way, &[]).await;
        clock.set(off, &wrong).await;
        let (ours, theirs) = (client_of(&right, way).await, client_of(&wrong, way).await);
        let mut differing = 0;
        for number in 0..2 * QUOTA * CLIENTS {
            let (subject, units) = (number % CLIENTS, number % 3);
            let right = ours.take(subject, units).await.unwrap();
            differing += u64::from(theirs.take(subject, units).await.unwrap() != right);
        }
        theirs.assert_sound();
        wrong.assert_every_key_ends().await;
        assert_held(&[
            Figure::fault_seen("minutes that the clock was off", minutes_off(&wrong).await),
            Figure::at_most("answers that differ from a right server's", differing, 0),
        ]);
    }
}

/// By the nodes' clocks, each client's window is an hour long and has just begun.
async fn a_clock_that_steps_costs_no_window_that_runs_on(version: Version) {
    for way in ways(version) {
        steps(version, way).await;
    }
}

async fn steps(version: Version, way: Way) {
    let clock = WallClock::new();
    let server = start_by(version, &clock, way, &[]).await;
    let client = client_of(&server, way).await;
    let (mut stepped, mut early) = (0, 0);
    for (step, off) in [0, 30 * MINUTE, -DAY, 0].into_iter().enumerate() {
        clock.set(off, &server).await;
        stepped += minutes_off(&server).await;
        for subject in 0..CLIENTS {
            let used = client.take(subject, 1).await.unwrap().used;
            early += u64::from(used != step as u64 + 1);
        }
    }
    client.assert_sound();
    // By the server's clock, all windows ended long ago.
    clock.set(DAY, &server).await;
    let mut anew = 0;
    for subject in 0..CLIENTS {
        let _losing = client.recorder.begin_loss();
        anew += u64::from(client.take(subject, 1).await.unwrap().used == 1);
    }
    client.assert_sound();
    assert_held(&[
        Figure::fault_seen("minutes that the clock stepped", stepped),
        Figure::at_most("windows that began early while they ran by it", early, 0),
        Figure::fault_seen("windows that were over by its last step", anew),
        Figure::at_most("windows that this one began anew", anew, CLIENTS),
    ]);
}

/// A primary replicates the expiry of a key as a time of the primary's clock.
async fn a_replica_in_another_time_loses_no_window_unless_it_is_ahead(version: Version) {
    let cases = |way| [(way, -DAY, 0), (way, DAY, CLIENTS)];
    for (way, off, max_lost_units) in ways(version).flat_map(cases) {
        let (clock, old) = (WallClock::new(), way.start(version, &QUICK).await);
        let new = start_by(version, &clock, way, &QUICK).await;
        clock.set(off, &new).await;
        new.follow(&old).await;
        let mut settings = patient(old.url().parse().unwrap());
        settings.topology = Topology::Static {
            primary: old.url().parse().unwrap(),
            replicas: vec![new.url().parse().unwrap()],
        };
        settings.link.proven_after = Duration::ZERO;
        let client = Client::new(&settings, way, QUOTA).await;
        for subject in 0..CLIENTS {
            client.take(subject, 1).await.unwrap();
        }
        old.is_followed().await;
        new.promote().await;
        old.begin_to_follow(&new).await;
        let mut lost = 0;
        for subject in 0..CLIENTS {
            let _losing = (off > 0).then(|| client.recorder.begin_loss());
            lost += u64::from(client.take(subject, 1).await.unwrap().used == 1);
        }
        client.is_on(&new).await;
        client.assert_sound();
        assert_held(&[
            Figure::fault_seen("minutes that the replica's clock was off", minutes_off(&new).await),
            Figure::at_most("windows that were lost with the primary", lost, max_lost_units),
        ]);
    }
}

async fn client_of(server: &Server, way: Way) -> Arc<Client> {
    Client::new(&patient(server.url().parse().unwrap()), way, QUOTA).await
}

async fn start_by(version: Version, clock: &WallClock, way: Way, more: &[&str]) -> Server {
    let own = way.arguments();
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    Server::start_by(version, clock, &[&own, more].concat()).await
}

/// Returns the best way that does not use the module, and the two ways that use the module. A
/// script executes the same server commands as a function.
fn ways(version: Version) -> impl Iterator<Item = Way> {
    [Way::of(version)[0], Way::Module, Way::Tables].into_iter()
}

async fn minutes_off(server: &Server) -> u64 {
    server.is_off_by().await.unsigned_abs() / MINUTE.unsigned_abs()
}
