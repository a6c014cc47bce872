//! Commands of nodes for the server module, and their replies.

use std::collections::HashMap;

use crate::error::CommandError;
use crate::request::{Location, Request};
use crate::step::{self, Buffers, Keyspace, Lists};
use crate::stored::Loaded;

/// The name of a key, or the id of an entry.
type Name = Vec<u8>;

/// The state of one server, without ends of lives.
#[derive(Default)]
struct Server {
    values: HashMap<Name, Vec<u8>>,
}

/// The places of one command.
struct Locations<'s> {
    server: &'s Server,
    keys: &'s [&'s [u8]],
}

impl Locations<'_> {
    fn name(&self, location: Location) -> Name {
        match location {
            Location::Key(key) => self.keys[key].to_vec(),
            Location::Entry(id) => id.to_vec(),
        }
    }
}

impl Keyspace for Locations<'_> {
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        let value = self.server.values.get(&self.name(location));
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
    let answers = |has_tables| {
        let mut server = Server::default();
        let mut run = |keys: &[&[u8]], argument: &[u8]| server.run(keys, argument);
        tollgate_redis::fuzzing::command(data, has_tables, &mut run)
    };
    assert_eq!(answers(false), answers(true));
}

impl Server {
    /// Carries out a command. Returns its reply, or `None` for one that is not of the module's form.
    fn run(&mut self, keys: &[&[u8]], argument: &[u8]) -> Option<Vec<u8>> {
        let mut buffers = Buffers::default();
        let Buffers {
            rules,
            locations,
            charges,
            plain_charges,
            states,
            changes,
            values,
            reply,
            undo,
        } = &mut buffers;
        let request = Request::parse(argument, keys.len(), rules, locations).ok()?;
        let mut locations = Locations { server: self, keys };
        let lists = Lists {
            charges,
            plain_charges,
            states,
            changes: &mut *changes,
            values: &mut *values,
            reply,
            undo,
        };
        step::run(request, &mut locations, None, lists).ok()?;
        let changed = changes
            .iter()
            .map(|change| (locations.name(change.location), values[change.value.clone()].to_vec()));
        let changed: Vec<_> = changed.collect();
        for (name, value) in changed {
            if value.is_empty() {
                self.values.remove(&name);
            } else {
                self.values.insert(name, value);
            }
        }
        Some(buffers.reply)
    }
}
