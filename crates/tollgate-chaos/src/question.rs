//! What callers ask, one question after the other.

use tollgate::core::{Headers, RequestAttributes};

use super::policy::{CLIENT_HEADER, HOUR, HOUR_QUOTA, SECOND};

/// The clients that ask in turn, until others take their places.
const CLIENTS: u64 = 16;
/// Questions of a client for each limit before another takes its place: more than it may have.
const QUESTIONS: u64 = HOUR_QUOTA * 3 / 2;
/// One question in so many is of a client that had its turn: what it used up it has to find so.
const RETURNS: u64 = 5;

/// Who asks for what.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The client.
    pub(crate) client: String,
    /// The limit's name after a slash, as rules match it.
    pub(crate) path: String,
}

impl Question {
    /// The question of this number: the same in every run.
    pub(super) fn of(number: u64) -> Self {
        let newest = number / (CLIENTS * QUESTIONS * 2) * CLIENTS;
        let in_turn = newest + number / 2 % CLIENTS;
        let client = if number % RETURNS == RETURNS - 1 {
            // Any odd number larger than the clients spreads the returns over them.
            number.wrapping_mul(0x9e37_79b9) % (in_turn + 1)
        } else {
            in_turn
        };
        let limit = if number.is_multiple_of(2) { HOUR } else { SECOND };
        Self { client: client.to_string(), path: format!("/{limit}") }
    }

    /// As a request would tell it.
    pub(crate) fn facts(&self) -> RequestAttributes<'_> {
        RequestAttributes { method: "GET", path: &self.path, host: None, peer: None, headers: self }
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
        let mut asked = BTreeMap::<_, u64>::new();
        for number in 0..CLIENTS * QUESTIONS * 8 {
            let Question { client, path } = Question::of(number);
            *asked.entry((path, client)).or_default() += 1;
        }
        assert_eq!(asked.len() as u64, 2 * 4 * CLIENTS);
        let first = (format!("/{HOUR}"), "0".to_owned());
        assert!(asked[&first] > HOUR_QUOTA, "{asked:?}");
    }
}
