//! Arguments of the server module's commands, and the values that it finds.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::buffers::{Buffers, Lists};
use crate::error::CommandError;
use crate::request::{Item, Location, Request};
use crate::step::{self, Keyspace};
use crate::stored::{Loaded, Stored};

/// The number of keys of a command.
const KEYS: usize = 4;

/// The most jobs of an argument. A few bytes can encode 100,000 jobs, and all but the first few of
/// them repeat the same work.
const JOBS: usize = 256;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// States in memory. A place without a state has the bytes of the input.
struct Memory<'d> {
    values: BTreeMap<[u8; 11], Vec<u8>>,
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

/// No argument and no value makes the step fail, and the step can read every state that it writes.
pub fn check(data: &[u8]) {
    let Some((argument, unknown)) =
        crate::cut(data).map(|(rest, location)| rest.split_at(location))
    else {
        return;
    };
    if BUFFERS.with_borrow_mut(|buffers| jobs(argument, buffers)) > JOBS {
        return;
    }
    let mut memory = Memory { values: BTreeMap::new(), unknown };
    // In the second call, the step finds the states that the first call wrote.
    for _ in 0..2 {
        BUFFERS.with_borrow_mut(|buffers| run(argument, &mut memory, buffers));
    }
}

/// Returns the number of jobs before the end of the argument or the first invalid one.
fn jobs(argument: &[u8], buffers: &mut Buffers) -> usize {
    buffers.clear();
    let Buffers { rules, locations, lists } = buffers;
    let Lists { charges, plain_charges, .. } = lists;
    let Ok(mut request) = Request::parse(argument, KEYS, rules, locations) else { return 0 };
    let mut count = 0;
    while let Ok(Some(item)) = request.next(charges, plain_charges) {
        count += if let Item::Run { jobs, .. } = item { jobs } else { 1 };
    }
    count
}

fn run(argument: &[u8], memory: &mut Memory<'_>, buffers: &mut Buffers) {
    buffers.clear();
    let Buffers { rules, locations, lists } = buffers;
    let Ok(request) = Request::parse(argument, KEYS, rules, locations) else { return };
    if step::run(request, memory, None, lists).is_err() {
        return;
    }
    for change in &lists.changes {
        let value = &lists.values[change.value.clone()];
        let stored = match change.location {
            Location::Key(_) => Stored::from_key(value),
            Location::Entry(_) => Stored::from_entry(value),
        };
        assert!(value.is_empty() || stored != Stored::Foreign, "{change:?}: {value:?}");
        memory.values.insert(name(change.location), value.to_vec());
    }
}
