//! The lists that the execution of a command fills. The next command reuses their memory.
//!
//! Without this reuse, a command would allocate memory about fifteen times. An allocation with its
//! release takes about 200 instructions in the server, because the server counts its memory.

use std::ops::Range;
use std::rc::Rc;

use tollgate_core::{Limit, Millis};

use crate::location_state::{LocationState, Undo};
use crate::request::{JobCharge, Location, Target};

/// All lists of a command.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) rules: Vec<Rc<Limit>>,
    pub(crate) locations: Vec<Location>,
    pub(crate) lists: Lists,
}

/// The lists that the step fills.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) charges: Vec<JobCharge>,
    pub(crate) plain_charges: Vec<Target>,
    pub(crate) states: Vec<LocationState>,
    pub(crate) changes: Vec<Change>,
    /// The bytes of the states that are not decoded, and the new values of all changes.
    pub(crate) values: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) undo: Vec<Undo>,
}

/// A state that a command changed and that is not written to its location yet.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) location: Location,
    /// The slot from which the state was read, if the location is a table entry.
    pub(crate) slot: usize,
    /// The range of the new value in [`Lists::values`]. The range is empty if the state is
    /// removed.
    pub(crate) value: Range<usize>,
    /// Whether the location had a state before the command.
    pub(crate) existed: bool,
    /// The new time to live, which is used only if `is_end_moved` is set.
    pub(crate) live: Millis,
    /// Whether the change moves the time at which the state expires.
    pub(crate) is_end_moved: bool,
}

impl Buffers {
    /// The largest capacity, in elements, that the lists of locations and charges keep after a
    /// command.
    const KEPT_LOCATIONS: usize = 1_024;
    /// The largest capacity, in bytes, that the lists of values and of reply bytes keep after a
    /// command.
    const KEPT_BYTES: usize = 256 * 1024;

    /// Empties all lists, and releases the memory of long lists.
    pub(crate) fn clear(&mut self) {
        let Lists { charges, values, reply, .. } = &self.lists;
        if self.locations.capacity().max(charges.capacity()) > Self::KEPT_LOCATIONS
            || values.capacity().max(reply.capacity()) > Self::KEPT_BYTES
        {
            *self = Self::default();
        }
        self.rules.clear();
        self.locations.clear();
        self.lists.charges.clear();
        self.lists.states.clear();
        self.lists.changes.clear();
        self.lists.values.clear();
        self.lists.reply.clear();
    }
}
