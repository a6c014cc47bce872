//! Runs the shared test vectors in every runtime of the step, and compares every answer.

use std::path::PathBuf;

use tollgate_conformance::PlainHash;
use tollgate_conformance::vectors::{FILES, Vector, read};
use tollgate_core::{
    Admission, Algorithm, Charge, Cost, Operation, Store, StoredState, Subject, Value,
};
use tollgate_redis::{Keys, Redis};

use crate::kit::{Version, on_every_version};
use crate::shard::Way;

on_every_version! {
    the_shared_vectors_have_their_answers
}

async fn the_shared_vectors_have_their_answers(version: Version) {
    for way in Way::of(version) {
        let server = way.start(version, &[]).await;
        let connection = server.connect().await;
        let store = Redis::new(connection, Keys::new(PlainHash), way.choice()).await.unwrap();
        assert_eq!(store.runtime(), way.runs());
        for (name, _) in FILES {
            for (line, text) in (1_u64..).zip(lines(name).lines()) {
                let place = format!("{way:?} {name}.jsonl:{line}");
                run(&store, &read(text).expect("a vector"), &place).await;
            }
        }
        server.assert_every_key_ends().await;
    }
}

fn lines(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tollgate-conformance/vectors");
    std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).expect("the vectors")
}

/// Executes the operations of a line for a subject that no other line uses.
async fn run(store: &Redis, vector: &Vector, place: &str) {
    let subject = Subject::new([("line", Value::Clear(place.as_bytes()))], &PlainHash);
    for (index, (now, operation, expected)) in vector.steps.iter().enumerate() {
        let (limit, operation) = (&vector.limit, *operation);
        let charge = Charge { limit, subject: &subject, operation };
        let mut reading = store.apply(*now, &[charge]).await.expect("an answer")[0];
        // A vector contains the positions of admitted charges only, as in the test of the step in
        // Rust.
        let has_permits = matches!(limit.algorithm(), Algorithm::Concurrency(_));
        let is_charge = matches!(operation, Operation::Charge { cost, .. } if cost != Cost::PEEK);
        if has_permits || !is_charge || reading.admission != Admission::Now {
            reading.position = expected.position;
        }
        if reading.found != StoredState::Discarded {
            reading.found = StoredState::Missing;
        }
        assert_eq!(reading, *expected, "{place} step {index}: {operation:?} at {now:?}");
    }
}
