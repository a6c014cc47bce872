//! The requests of callers, as a fixed sequence.

use tollgate::model::{Headers, RequestAttributes};

use super::policy::{CLIENT_HEADER, HOUR, HOUR_QUOTA, SECOND};

/// The number of clients that send requests in turn. When these clients have sent [`QUESTIONS`]
/// requests for each limit, new clients replace them.
const CLIENTS: u64 = 16;
/// The number of requests that a client sends for each limit before a new client replaces it. These
/// requests together cost more than the quota.
const QUESTIONS: u64 = HOUR_QUOTA * 3 / 2;
/// One in `RETURNS` requests is from an earlier client. The units that an earlier client has used
/// must still count as used.
const RETURNS: u64 = 5;

/// A request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The name of the client that sends the request.
    pub(crate) client: String,
    /// The path of the request: a slash and the name of the limit. The rules select the limit by
    /// this path.
    pub(crate) path: String,
}

impl Question {
    /// Returns the request with the index `number` in the sequence. The sequence is the same in
    /// every run.
    pub(super) fn of(number: u64) -> Self {
        let newest = number / (CLIENTS * QUESTIONS * 2) * CLIENTS;
        let in_turn = newest + number / 2 % CLIENTS;
        let client = if number % RETURNS == RETURNS - 1 {
            // A multiplication by an odd number that is larger than the number of clients spreads
            // these requests over all earlier clients.
            number.wrapping_mul(0x9e37_79b9) % (in_turn + 1)
        } else {
            in_turn
        };
        let limit = if number.is_multiple_of(2) { HOUR } else { SECOND };
        Self { client: client.to_string(), path: format!("/{limit}") }
    }

    /// Returns the request's attributes.
    pub(crate) fn facts(&self) -> RequestAttributes<'_> {
        RequestAttributes {
            method: "GET",
            path: &self.path,
            query: None,
            host: None,
            peer: None,
            headers: self,
        }
    }
}

impl Headers for Question {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == CLIENT_HEADER && index == 0).then_some(self.client.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_client_asks_for_more_than_it_may_have_and_some_return() {
        let mut decisions = BTreeMap::<_, u64>::new();
        for number in 0..CLIENTS * QUESTIONS * 8 {
            let Question { client, path } = Question::of(number);
            *decisions.entry((path, client)).or_default() += 1;
        }
        assert_eq!(decisions.len() as u64, 2 * 4 * CLIENTS);
        let first = (format!("/{HOUR}"), "0".to_owned());
        assert!(decisions[&first] > HOUR_QUOTA, "{decisions:?}");
    }
}
