//! Arguments of the server module's commands, and the values that it finds.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::error::CommandError;
use crate::request::{Location, Request};
use crate::step::{self, Buffers, Keyspace, Lists};
use crate::stored::{Loaded, Stored};

/// The number of keys of a command.
const KEYS: usize = 4;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// States in memory. A place without a state has the bytes of the input.
struct Memory<'d> {
    values: HashMap<[u8; 11], Vec<u8>>,
    unknown: &'d [u8],
}

fn name(location: Location) -> [u8; 11] {
    let mut name = [0; 11];
    match location {
        Location::Key(key) => name[0] = 1 + key as u8,
        Location::Entry(id) => name[1..].copy_from_slice(&id),
    }
    name
}

impl Keyspace for Memory<'_> {
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError> {
        let bytes = self.values.get(&name(location)).map_or(self.unknown, |value| value);
        Ok(loaded(match location {
            _ if bytes.is_empty() => Loaded::Missing,
            Location::Key(0) => Loaded::Foreign,
            Location::Key(_) => Loaded::Key(bytes),
            Location::Entry(_) => Loaded::Entry(bytes, 0),
        }))
    }

    fn load_entries(
        &mut self,
        _locations: &[Location],
        _loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError> {
        Ok(())
    }

    fn is_full(&mut self, location: Location) -> bool {
        matches!(location, Location::Entry([255, ..]))
    }
}

/// No argument and no value makes the step fail, and what it writes is a state that it reads.
pub fn check(data: &[u8]) {
    let Some((argument, unknown)) =
        crate::cut(data).map(|(rest, location)| rest.split_at(location))
    else {
        return;
    };
    let mut memory = Memory { values: HashMap::new(), unknown };
    // In the second call, the step finds what it wrote in the first.
    for _ in 0..2 {
        BUFFERS.with_borrow_mut(|buffers| run(argument, &mut memory, buffers));
    }
}

fn run(argument: &[u8], memory: &mut Memory<'_>, buffers: &mut Buffers) {
    buffers.clear();
    let Buffers { rules, locations, charges, plain_charges, states, changes, values, reply, undo } =
        buffers;
    let Ok(request) = Request::parse(argument, KEYS, rules, locations) else { return };
    let lists = Lists {
        charges,
        plain_charges,
        states,
        changes: &mut *changes,
        values: &mut *values,
        reply,
        undo,
    };
    if step::run(request, memory, None, lists).is_err() {
        return;
    }
    for change in changes.iter() {
        let value = &values[change.value.clone()];
        let stored = match change.location {
            Location::Key(_) => Stored::from_key(value),
            Location::Entry(_) => Stored::from_entry(value),
        };
        assert!(value.is_empty() || stored != Stored::Foreign, "{change:?}: {value:?}");
        memory.values.insert(name(change.location), value.to_vec());
    }
}
