//! Runs the step with the keys of a simulated server.

use std::cell::Cell;

use tollgate_core::Timestamp;

use super::{Entry, Server, Write};
use crate::answer::Reply as StepReply;
use crate::buffers::{Buffers, Change};
use crate::error::CommandError;
use crate::request::{Location, Request};
use crate::step::{self, Keyspace};
use crate::stored::Loaded;

thread_local! {
    static BUFFERS: Cell<Buffers> = Cell::default();
}

/// The keys that one command names.
struct Keys<'s> {
    server: &'s Server,
    names: &'s [&'s [u8]],
}

impl Keys<'_> {
    /// Returns the name of the key at `location`. The simulated server has no tables.
    fn name(&self, location: Location) -> Result<&[u8], CommandError> {
        let Location::Key(key) = location else { return Err(CommandError::Invalid("place")) };
        self.names.get(key).copied().ok_or(CommandError::Short)
    }

    /// Returns the write that stores `change`. The new value is a range of `values`. `clock` is the
    /// time of the server's clock.
    fn write(
        &self,
        change: &Change,
        values: &[u8],
        clock: Timestamp,
    ) -> Result<Write, CommandError> {
        let name = self.name(change.location)?.to_vec();
        let kept = self.server.entry(&name).and_then(|entry| entry.expires_at);
        let moved = Some(clock.after(change.live).as_millis());
        let expires_at = if change.is_end_moved { moved } else { kept.or(moved) };
        let entry = Entry { value: values[change.value.clone()].to_vec(), expires_at };
        Ok(Write::Key { name, entry: Some(entry).filter(|entry| !entry.value.is_empty()) })
    }
}

impl Keyspace for Keys<'_> {
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        let entry = self.server.entry(self.name(location)?);
        Ok(loaded(entry.map_or(Loaded::Missing, |entry| Loaded::Key(&entry.value))))
    }

    fn load_entries(
        &mut self,
        _places: &[Location],
        _loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError> {
        Ok(())
    }

    fn is_full(&mut self, _place: Location) -> bool {
        false
    }
}

/// Runs the step. Returns its reply, and the writes that the caller must execute.
pub(super) fn run(
    server: &Server,
    names: &[&[u8]],
    argument: &[u8],
) -> Result<(Vec<u8>, Vec<Write>), CommandError> {
    let mut buffers = BUFFERS.take();
    buffers.clear();
    let answer = run_with(server, names, argument, &mut buffers);
    BUFFERS.set(buffers);
    answer
}

fn run_with(
    server: &Server,
    names: &[&[u8]],
    argument: &[u8],
    buffers: &mut Buffers,
) -> Result<(Vec<u8>, Vec<Write>), CommandError> {
    let clock = server.now();
    let Buffers { rules, locations, lists } = buffers;
    let request = Request::parse(argument, names.len(), rules, locations)?;
    let deadline = request.deadline;
    if deadline.is_some_and(|deadline| clock > deadline) {
        StepReply::late(&mut lists.reply, clock);
        return Ok((lists.reply.clone(), Vec::new()));
    }
    let keys = &mut Keys { server, names };
    step::run(request, keys, deadline.map(|_| clock), lists)?;
    let writes = lists.changes.iter().map(|change| keys.write(change, &lists.values, clock));
    let writes = writes.collect::<Result<_, _>>()?;
    Ok((lists.reply.clone(), writes))
}
