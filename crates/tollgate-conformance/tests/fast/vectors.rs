//! Tests that the shared vectors contain the model's results, and that the core agrees with them.

use std::path::PathBuf;

use tollgate_conformance::vectors::{FILES, lines_of_model, read, write};
use tollgate_core::{Admission, Algorithm, Cost, Operation, StoredState, decide};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(format!("{name}.jsonl"))
}

fn lines(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("the vectors are committed")
}

/// TOLLGATE_WRITE_VECTORS=1 cargo test -p tollgate-conformance vectors
#[test]
fn the_files_are_the_models() {
    for (name, kind) in FILES {
        let expected = lines_of_model(kind);
        if std::env::var_os("TOLLGATE_WRITE_VECTORS").is_some() {
            std::fs::write(path(name), &expected).expect("the folder is there");
        }
        assert!(lines(name) == expected, "{name}.jsonl is not what the model answers");
    }
}

#[test]
fn what_is_read_is_what_was_written() {
    for (name, _) in FILES {
        for line in lines(name).lines() {
            assert_eq!(read(line).map(|vector| write(&vector)).as_deref(), Some(line), "{name}");
        }
    }
    assert_eq!(read("{}"), None);
    assert_eq!(read("no JSON"), None);
}

#[test]
fn the_step_agrees() {
    for (name, _) in FILES {
        for (number, line) in lines(name).lines().enumerate() {
            let vector = read(line).expect("a vector");
            let mut cell = None;
            for (index, (now, operation, expected)) in vector.steps.iter().enumerate() {
                let (mut reading, next) = decide(cell, &vector.limit, *operation, *now);
                cell = next;
                let concurrency = matches!(vector.limit.algorithm(), Algorithm::Concurrency(_));
                let charged =
                    matches!(operation, Operation::Charge { cost, .. } if *cost != Cost::PEEK);
                if concurrency || !charged || reading.admission != Admission::Now {
                    reading.position = expected.position;
                }
                if reading.found != StoredState::Discarded {
                    reading.found = StoredState::Missing;
                }
                let place = format!("{name}.jsonl:{} step {index}", number + 1);
                assert_eq!(reading, *expected, "{place}: {operation:?} at {now:?}");
            }
        }
    }
}
