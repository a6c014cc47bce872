//! The mark of a shard: a key that every server with the shard's counters has and an empty server
//! lacks.

use redis::{Cmd, Value};

/// The key of the mark. Keys of limits never have this name.
pub(crate) const GENERATION: &str = "tg1:{generation}";

/// The key of the epoch in the mark. The epoch is the number of times that nodes moved to another
/// primary.
pub(crate) const EPOCH: &str = "tg1:{generation}:epoch";

/// The shard's mark, as one server stores it. If several servers report themselves as primary, the
/// server with the greater mark is preferred.
///
/// The first node that charges a server writes the mark, and replication copies the mark to
/// replicas. A server that restarts without its data lacks the mark. A server that restarts with
/// old data has a lower epoch in its mark than the server that nodes charged in the meantime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EpochMark {
    /// The server has no mark: no node has charged the server, or the server lost its data.
    Missing,
    /// The mark could not be read.
    #[default]
    Unknown,
    /// The server has a mark with this epoch.
    Present(u64),
}

impl EpochMark {
    /// Returns the command that reads the mark. The step uses the same command, so reading the mark
    /// requires no further permission.
    pub(crate) fn question() -> Cmd {
        let mut question = redis::cmd("MGET");
        question.arg(GENERATION).arg(EPOCH);
        question
    }

    /// Parses the reply to the command of [`question`](Self::question).
    pub(crate) fn from_reply(reply: &Value) -> Self {
        let Value::Array(values) = reply else { return Self::Unknown };
        match values.as_slice() {
            [Value::Nil, _] => Self::Missing,
            [Value::BulkString(_), epoch] => {
                // A mark without an epoch belongs to the first epoch.
                Self::Present(redis::from_redis_value_ref(epoch).unwrap_or_default())
            }
            _ => Self::Unknown,
        }
    }

    /// Returns the epoch of the mark, or zero if there is no mark.
    pub(crate) const fn epoch(self) -> u64 {
        match self {
            Self::Present(epoch) => epoch,
            Self::Missing | Self::Unknown => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_better_than_none_and_a_later_epoch_than_an_earlier_one() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let read = |values: Vec<Value>| EpochMark::from_reply(&Value::Array(values));
        let empty = read(vec![Value::Nil, Value::Nil]);
        let first = read(vec![text("mark"), Value::Nil]);
        let later = read(vec![text("mark"), text("12")]);
        assert_eq!((empty, first), (EpochMark::Missing, EpochMark::Present(0)));
        assert_eq!(later.epoch(), 12);
        assert!(empty < EpochMark::from_reply(&Value::Okay) && empty < first && first < later);
    }
}
