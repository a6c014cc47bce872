//! Commands of nodes for the server module, and their replies.

use std::collections::HashMap;

use crate::error::CommandError;
use crate::request::{Place, Request};
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
struct Places<'s> {
    server: &'s Server,
    keys: &'s [&'s [u8]],
}

impl Places<'_> {
    fn name(&self, place: Place) -> Name {
        match place {
            Place::Key(key) => self.keys[key].to_vec(),
            Place::Entry(id) => id.to_vec(),
        }
    }
}

impl Keyspace for Places<'_> {
    fn load<T>(
        &mut self,
        place: Place,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        let value = self.server.values.get(&self.name(place));
        Ok(loaded(match (value, place) {
            (None, _) => Loaded::Missing,
            (Some(value), Place::Key(_)) => Loaded::Key(value),
            (Some(value), Place::Entry(_)) => Loaded::Entry(value, 0),
        }))
    }

    fn load_entries(
        &mut self,
        _places: &[Place],
        _loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError> {
        Ok(())
    }

    fn is_full(&mut self, _place: Place) -> bool {
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
        let Buffers { rules, places, asks, takes, held, changes, values, reply, undo } =
            &mut buffers;
        let request = Request::parse(argument, keys.len(), rules, places).ok()?;
        let mut places = Places { server: self, keys };
        let lists =
            Lists { asks, takes, held, changes: &mut *changes, values: &mut *values, reply, undo };
        step::run(request, &mut places, None, lists).ok()?;
        let changed = changes
            .iter()
            .map(|change| (places.name(change.place), values[change.value.clone()].to_vec()));
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
