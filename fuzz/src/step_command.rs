//! Commands of nodes for the server module, and their replies.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::buffers::Buffers;
use crate::error::CommandError;
use crate::request::{Location, Request};
use crate::step::{self, Keyspace};
use crate::stored::Loaded;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// The state of one server, without ends of lives. The name of a state is the name of a key or the
/// id of an entry.
#[derive(Default)]
struct Server {
    values: BTreeMap<Box<[u8]>, Vec<u8>>,
}

/// The places of one command.
struct Locations<'s> {
    server: &'s Server,
    keys: &'s [&'s [u8]],
}

/// Returns the name of the state at a location of a command with the keys `keys`.
fn name<'l>(keys: &[&'l [u8]], location: &'l Location) -> &'l [u8] {
    match location {
        Location::Key(key) => keys[*key],
        Location::Entry(id) => id,
    }
}

impl Keyspace for Locations<'_> {
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        let value = self.server.values.get(name(self.keys, &location));
        Ok(loaded(match (value, location) {
            (None, _) => Loaded::Missing,
            (Some(value), Location::Key(_)) => Loaded::Key(value),
            (Some(value), Location::Entry(_)) => Loaded::Entry(value, 0),
        }))
    }

    fn load_entries(
        &mut self,
        _locations: &[Location],
        _loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError> {
        Ok(())
    }

    fn is_full(&mut self, _place: Location) -> bool {
        false
    }
}

/// The module reads every command of a node, the node reads every reply, and both layouts give the same
/// answers.
pub fn check(data: &[u8]) {
    let (mut with_keys, mut with_tables) = (Server::default(), Server::default());
    BUFFERS.with_borrow_mut(|buffers| {
        tollgate_redis::fuzzing::command(data, &mut |has_tables, keys, argument| {
            let server = if has_tables { &mut with_tables } else { &mut with_keys };
            server.run(keys, argument, buffers)
        });
    });
}

impl Server {
    /// Carries out a command. Returns its reply, or `None` for one that is not of the module's form.
    fn run(&mut self, keys: &[&[u8]], argument: &[u8], buffers: &mut Buffers) -> Option<Vec<u8>> {
        buffers.clear();
        let Buffers { rules, locations, lists } = &mut *buffers;
        let request = Request::parse(argument, keys.len(), rules, locations).ok()?;
        step::run(request, &mut Locations { server: self, keys }, None, lists).ok()?;
        for change in &lists.changes {
            let (name, value) = (name(keys, &change.location), &lists.values[change.value.clone()]);
            if value.is_empty() {
                self.values.remove(name);
            } else if let Some(stored) = self.values.get_mut(name) {
                value.clone_into(stored);
            } else {
                self.values.insert(name.into(), value.to_vec());
            }
        }
        Some(buffers.lists.reply.clone())
    }
}
