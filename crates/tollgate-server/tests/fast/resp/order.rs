//! Many commands at once: their replies and their charges keep the order of the commands, however
//! fast the store is.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tollgate::model::policy::OnFailure;
use tollgate::model::{Charge, Readings, Store, StoreError, Subject, Timestamp};
use tollgate::store::memory::Memory;
use tollgate_server::resp::MAX_IN_FLIGHT;

use crate::resp::kit::{Open, command};

#[test]
fn a_pipeline_is_answered_in_its_order() {
    let open = Open::new();
    let mut described = Vec::new();
    let mut expected = String::new();
    for round in 0..200 {
        described.extend(command(&["CL.THROTTLE", "key", "99", "100", "3600"]));
        described.extend(command(&["ECHO", &round.to_string()]));
        let left = 99_i64 - round;
        let (limited, left) = if left < 0 { (1, 0) } else { (0, left) };
        let retry = if limited == 1 { 36 } else { -1 };
        let reset = 36 * (100 - left);
        let number = round.to_string();
        expected += &format!("*5|:{limited}|:100|:{left}|:{retry}|:{reset}|");
        expected += &format!("${}|{number}|", number.len());
    }
    assert_eq!(open.printed(described), expected);
}

/// A store that answers only when the test allows it, and records which calls were concurrent.
struct Gate {
    memory: Memory,
    /// The subjects of the calls that have started, and of those that have ended.
    begun: Mutex<Vec<Subject>>,
    ended: Mutex<Vec<Subject>>,
    open: Semaphore,
}

impl Gate {
    fn shut() -> Arc<Self> {
        let (begun, ended) = (Mutex::default(), Mutex::default());
        Arc::new(Self { memory: Memory::default(), begun, ended, open: Semaphore::new(0) })
    }

    fn wait_for(&self, begun: usize) {
        while self.begun.lock().len() < begun {
            std::thread::yield_now();
        }
    }
}

impl Store for Gate {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let subject = charges[0].subject.clone();
        self.begun.lock().push(subject.clone());
        // The semaphore is never closed.
        let _ = self.open.acquire().await.map(|permit| permit.forget());
        self.ended.lock().push(subject);
        self.memory.apply_now(now, charges)
    }
}

#[test]
fn different_keys_wait_for_the_store_together_and_equal_ones_in_turn() {
    let gate = Gate::shut();
    let open = Open::failing(Arc::clone(&gate), OnFailure::Deny);
    let client = open.client();
    let keys = ["a", "b", "a", "c"];
    let described: Vec<u8> =
        keys.iter().flat_map(|key| command(&["CL.THROTTLE", key, "1", "1", "60"])).collect();
    client.send_line(described);
    // The third command has the key of the first, so it is started after that one is answered.
    gate.wait_for(2);
    gate.open.add_permits(2);
    gate.wait_for(4);
    assert_eq!(gate.ended.lock().len(), 2);
    gate.open.add_permits(2);
    let fresh = "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n";
    let again = "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n";
    client.receive_reply(&[fresh, fresh, again, fresh].concat());
}

#[test]
fn no_more_wait_together_than_may() {
    let gate = Gate::shut();
    let open = Open::failing(Arc::clone(&gate), OnFailure::Deny);
    let client = open.client();
    let count = MAX_IN_FLIGHT * 2;
    let key = |index: usize| index.to_string();
    let described: Vec<u8> = (0..count)
        .flat_map(|index| command(&["CL.THROTTLE", &key(index), "0", "1", "60"]))
        .collect();
    client.send_line(described);
    gate.wait_for(MAX_IN_FLIGHT);
    assert_eq!(gate.begun.lock().len(), MAX_IN_FLIGHT);
    gate.open.add_permits(count);
    client.receive_reply(&"*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n".repeat(count));
    let requested: HashSet<Subject> = gate.ended.lock().iter().cloned().collect();
    assert_eq!(requested.len(), count);
}
