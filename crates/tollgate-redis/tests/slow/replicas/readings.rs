//! The answers of a replica. The answers equal the primary's answers, and the replica writes
//! nothing.

use std::collections::BTreeSet;

use tollgate_conformance::trace::random_limit;
use tollgate_conformance::{PlainHash, Random};
use tollgate_core::{
    Charge, ChargeId, Cost, Limit, Millis, Operation, Readings, Store, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, ReadFrom, RedisShard, RuntimeChoice, ShardSettings};

use crate::kit::{Version, on_every_version};
use crate::replicas::pair::{Client, Pair};
use crate::replicas::{NOW, PATIENCE};

/// The number of subjects of each limit, and also the number of read-only calls for each subject.
const SUBJECTS: u64 = 30;
/// The number of algorithms and variants that [`random_limit`] creates.
const KINDS: u64 = 7;
const CALLS: u64 = 2_000;

/// The commands that change keys.
const WRITES: [&str; 6] = ["set", "incrby", "del", "pexpire", "fcall", "function|load"];

/// The time for which keys outlive the test on a busy machine. A key that expired between the
/// answers of the two servers would make a difference. The times of the calls are further apart, so
/// some keys have impossible times in the future.
const OUTLIVES: Millis = Millis::from_secs(100);

on_every_version! {
    a_replica_answers_as_the_primary_does
}

async fn a_replica_answers_as_the_primary_does(version: Version) {
    let pair = Pair::start(version).await;
    let choices = if version.has_functions() {
        &[RuntimeChoice::Best, RuntimeChoice::Script][..]
    } else {
        &[RuntimeChoice::Best]
    };
    for choice in choices {
        let settings = ShardSettings { reads: ReadFrom::Primary, ..pair.settings() };
        let primary = RedisShard::open(&settings, Keys::new(PlainHash), *choice);
        primary.ready(PATIENCE).await.unwrap();
        let primary = primary.with_deadline(PATIENCE);
        let replica = Client::connect(&pair.settings(), *choice).await.store;
        let mut random = Random::new(23);
        let limits: Vec<_> = (0..KINDS)
            .map(|kind| random_limit(&mut random, kind, &format!("kind{kind}{choice:?}")))
            .map(|limit| limit.with_skew_max(OUTLIVES))
            .collect();
        fill(&primary, &limits, &mut random, &pair).await;
        pair.primary.is_followed().await;
        pair.replica.forget_commands().await;
        let before = primary.status()[0].counts.jobs;
        for _ in 0..CALLS {
            let (now, charges) = (moment(&mut random), random_asks(&limits, &mut random));
            let one = apply(&primary, now, &charges).await;
            let other = apply(&replica, now, &charges).await;
            assert_eq!(*one, *other, "{now:?} {charges:?}");
        }
        assert_eq!(primary.status()[0].counts.jobs, before + CALLS);
        assert_eq!(replica.status()[0].counts.jobs, 0, "all were the replica's");
        let commands: BTreeSet<_> = pair.replica.commands().await.into_keys().collect();
        assert!(commands.contains("mget"), "{commands:?}");
        let writes: Vec<_> = WRITES.iter().filter(|name| commands.contains(**name)).collect();
        assert!(writes.is_empty(), "{writes:?}");
    }
}

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

fn moment(random: &mut Random) -> Timestamp {
    let back = NOW.as_millis() - random.within(0..=3_000);
    Timestamp::from_millis(back).after(Millis::new(random.within(0..=200_000)))
}

fn random_cost(limit: &Limit, random: &mut Random) -> Cost {
    let capacity = limit.capacity();
    let units = [0, 1, 2, capacity, capacity.saturating_add(1), capacity / 2 + 1];
    Cost::new(random.one_of(&units)).unwrap_or(Cost::ONE)
}

/// Creates subjects of each limit in every state: unused, partly used, used up, and with data of
/// another program.
async fn fill(store: &RedisShard, limits: &[Limit], random: &mut Random, pair: &Pair) {
    let keys = Keys::new(PlainHash);
    let mut connection = pair.primary.connect().await;
    for limit in limits {
        for number in 0..SUBJECTS {
            let subject = subject(number);
            if number % 10 == 9 {
                let name = keys.name(limit, &subject);
                let mut junk = redis::cmd(if number % 20 == 9 { "SET" } else { "SADD" });
                junk.arg(&*name).arg("junk").exec_async(&mut connection).await.unwrap();
                continue;
            }
            for id in 0..number % 5 {
                let (cost, id) = (random_cost(limit, random), ChargeId(id.into()));
                let operation = Operation::Charge { cost, id };
                let charge = Charge { limit, subject: &subject, operation };
                store.apply(moment(random), &[charge]).await.unwrap();
            }
        }
    }
}

type Asks<'l> = Vec<(&'l Limit, Subject, Operation)>;

/// Returns random read-only operations of one subject on a few limits.
fn random_asks<'l>(limits: &'l [Limit], random: &mut Random) -> Asks<'l> {
    let number = random.within(0..=SUBJECTS - 1);
    let first = random.within(0..=KINDS - 1) as usize;
    let count = random.within(1..=4) as usize;
    let operation = |place: usize| {
        let limit = &limits[(first + place) % limits.len()];
        let look = Operation::Peek { cost: random_cost(limit, random) };
        let peek = Operation::Charge { cost: Cost::PEEK, id: ChargeId(9) };
        (limit, subject(number), random.one_of(&[look, look, peek]))
    };
    (0..count).map(operation).collect()
}

async fn apply(store: &RedisShard, now: Timestamp, charges: &Asks<'_>) -> Readings {
    let charges: Vec<_> = charges
        .iter()
        .map(|(limit, subject, operation)| Charge { limit, subject, operation: *operation })
        .collect();
    store.apply(now, &charges).await.unwrap()
}
