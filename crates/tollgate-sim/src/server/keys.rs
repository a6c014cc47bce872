//! Runs the step on a server's keys.

use tollgate_core::Timestamp;

use super::{Entry, Server, Write};
use crate::answer::Reply as StepReply;
use crate::error::CommandError;
use crate::request::{Place, Request};
use crate::step::{self, Buffers, Keyspace, Lists};
use crate::stored::Stored;

/// The keys of one command.
struct Keys<'s> {
    server: &'s Server,
    names: &'s [Vec<u8>],
}

impl Keyspace for Keys<'_> {
    fn load(&mut self, place: Place) -> Result<(Stored, usize), CommandError> {
        let name = self.names.get(place.key()).ok_or(CommandError::Short)?;
        let entry = self.server.entry(name);
        Ok((entry.map_or(Stored::Missing, |entry| Stored::from_key(&entry.value)), 0))
    }

    fn is_full(&mut self, _place: Place) -> bool {
        false
    }
}

/// Runs the step. Returns its reply, and the writes to carry out.
pub(super) fn run(
    server: &Server,
    names: &[Vec<u8>],
    argument: &[u8],
) -> Result<(Vec<u8>, Vec<Write>), CommandError> {
    let clock = server.now();
    let mut buffers = Buffers::default();
    let Buffers { rules, places, asks, held, changes, values } = &mut buffers;
    let request = Request::parse(argument, names.len(), rules, places)?;
    let asked = request.deadline;
    if asked.is_some_and(|deadline| clock > deadline) {
        return Ok((StepReply::late(clock), Vec::new()));
    }
    let lists = Lists { asks, held, changes: &mut *changes, values: &mut *values };
    let keyspace = &mut Keys { server, names };
    let reply = step::run(request, keyspace, asked.map(|_| clock), lists)?;
    let writes = changes.iter().map(|change| {
        let name = names[change.place.key()].clone();
        let kept = server.entry(&name).and_then(|entry| entry.expires_at);
        let ends_at: Timestamp = clock.after(change.live);
        let moved = Some(ends_at.as_millis());
        let expires_at = if change.is_end_moved { moved } else { kept.or(moved) };
        let entry = Entry { value: values[change.value.clone()].to_vec(), expires_at };
        Write::Key { name, entry: Some(entry).filter(|entry| !entry.value.is_empty()) }
    });
    Ok((reply, writes.collect()))
}
