//! The tables of a server: how entries are distributed over them, and how they grow. A table is a
//! string that contains the states of many subjects.
//!
//! A server begins with one table, which every command names. As the tables grow, they are divided
//! one after another, as in linear hashing. The first table contains the number of tables. The last
//! bits of an entry's id select its table. As many bits are used as the number of tables needs.

use redis_module::RedisString;
use redis_module::key::RedisKeyWritable;
use tollgate_core::Timestamp;

use super::{Opened, Repetition, ServerKeys, expire, replace, seconds};
use crate::buffers::Change;
use crate::error::CommandError;
use crate::request::{ID_BYTES, Id, Location};
use crate::slot::is_short;
use crate::table::{MAX_UNITS, Room, Table};

/// The largest number of tables of a server. So many tables hold at most 8 GiB together.
pub(crate) const MAX_TABLES: usize = 1_024;
/// The size in bytes above which a growing table causes a division. The divided table is not always
/// the growing one: tables are divided in the order of linear hashing.
const DIVIDED_BYTES: usize = 4 << 20;
/// The number of used units of 32 bytes in a table above which the table gets no new entries.
const FULL_UNITS: usize = MAX_UNITS / 100 * 80;
/// The size, in units of 32 bytes, above which a table is rebuilt with fewer units when it uses
/// less than a quarter of them.
const SHRINKING_UNITS: usize = 64;
/// The number of slots that each write checks for expired entries, to remove them. For each new
/// entry, a write checks [`SWEEP_FOR_EACH`] more slots.
const SWEEP: usize = 8;
const SWEEP_FOR_EACH: usize = 2;
/// The end of the name of the first table. The name of another table ends with the table's number
/// in place of the `0`.
const FIRST: &[u8] = b"#0";

/// Returns the number of the table that contains the entry `id`, if the server has `tables` tables.
pub(super) fn table_of(id: Id, tables: usize) -> usize {
    if tables <= 1 {
        return 0;
    }
    let bits = usize::from(u16::from_be_bytes([id[ID_BYTES - 2], id[ID_BYTES - 1]]));
    let mask = tables.next_power_of_two() - 1;
    let table = bits & mask;
    if table < tables { table } else { bits & (mask >> 1) }
}

/// Returns the number of tables of the server, which the first table contains. If `first` is
/// `None`, there is no first table yet, and the number is 1.
pub(super) fn tables_of(first: Option<&Table<&[u8]>>) -> usize {
    first.map_or(1, Table::tables).min(MAX_TABLES)
}

/// Returns the number of the table that is divided next, if the server has `tables` tables.
const fn next_divided(tables: usize) -> usize {
    tables - (1 << tables.ilog2())
}

impl ServerKeys<'_> {
    /// Returns the number of tables of the server. Reads the first table if the number is not known
    /// yet.
    pub(super) fn tables(&mut self) -> Result<usize, CommandError> {
        if self.tables == 0 {
            self.check_first_name()?;
            self.tables = self.read_table(0, tables_of)?;
        }
        Ok(self.tables)
    }

    /// Returns an error unless the first key of the command is the first table. The names of the
    /// other tables follow from its name.
    pub(super) fn check_first_name(&self) -> Result<(), CommandError> {
        let is_first = self.names.first().is_some_and(|name| name.ends_with(FIRST));
        if is_first { Ok(()) } else { Err(CommandError::Invalid("name of the first table")) }
    }

    fn open_table(&mut self, table: usize) -> &Opened {
        if table == 0 {
            return self.open(0);
        }
        if self.open.tables.len() <= table {
            self.open.tables.resize_with(table + 1, || None);
        }
        let (context, access, first) = (self.context, self.access, &self.names[0]);
        self.open.tables[table].get_or_insert_with(|| {
            let first = first.as_slice();
            let mut name = first[..first.len().saturating_sub(1)].to_vec();
            name.extend_from_slice(itoa::Buffer::new().format(table).as_bytes());
            let name = RedisString::create_from_slice(context.get_raw(), &name);
            Opened::new(context, access, &name)
        })
    }

    fn writable_table(&mut self, table: usize) -> Result<&RedisKeyWritable, CommandError> {
        self.open_table(table).writable()
    }

    /// Calls `read` with the table with the number `table`, or with `None` if there is no such
    /// table. Returns what `read` returns.
    pub(super) fn read_table<T>(
        &mut self,
        table: usize,
        read: impl FnOnce(Option<&Table<&[u8]>>) -> T,
    ) -> Result<T, CommandError> {
        self.open_table(table).read(|bytes| match bytes {
            Ok(None) => Ok(read(None)),
            Ok(Some(bytes)) => {
                Table::open(bytes).map(|table| read(Some(&table))).ok_or(CommandError::NotATable)
            }
            Err(()) => Err(CommandError::NotATable),
        })
    }

    /// Returns whether the table that would contain the entry `id` gets no new entries: the table
    /// is full, and the server already has the largest number of tables.
    pub(super) fn is_table_full(&mut self, id: Id) -> bool {
        let full = self.tables().and_then(|tables| {
            let is_full = |table: Option<&Table<&[u8]>>| {
                table.is_some_and(|table| table.filled() > FULL_UNITS)
            };
            Ok(tables == MAX_TABLES && self.read_table(table_of(id, tables), is_full)?)
        });
        full.unwrap_or(false)
    }

    /// Writes the changes of table entries, and skips the changes of keys. Returns how the written
    /// changes must be replicated.
    ///
    /// # Errors
    /// [`CommandError`] if a table would become too large. In that case nothing is written.
    pub(super) fn write_entries(
        &mut self,
        changes: &mut [Change],
        values: &[u8],
        clock: Timestamp,
    ) -> Result<Repetition, CommandError> {
        let (mut entries, mut is_independent, mut is_in_place) = (0, true, true);
        for change in &*changes {
            entries += usize::from(matches!(change.location, Location::Entry(_)));
            is_independent &= change.is_independent_of_the_clock();
            is_in_place &= change.existed && is_short(&values[change.value.clone()]);
        }
        let repetition = if is_independent { Repetition::AsIs } else { Repetition::AtTime };
        if entries == 0 {
            return Ok(repetition);
        }
        if is_in_place && entries == changes.len() && self.tables()? == 1 {
            self.write_table(0, None, changes, values, repetition, clock)?;
            return Ok(repetition);
        }
        self.sort(changes)?;
        let mut plan = self.plan(changes, values, repetition, clock)?;
        if plan.is_divided {
            self.divide(clock)?;
            self.sort(changes)?;
            plan = self.plan(changes, values, plan.repetition, clock)?;
        }
        let (tables, mut last) = (self.tables, 0);
        let mut grown = plan.grown.into_iter().peekable();
        for of_table in changes.chunk_by(|one, next| one.table(tables) == next.table(tables)) {
            let Some(table) = of_table.first().and_then(|change| change.table(tables)) else {
                continue;
            };
            let bytes = grown.next_if(|(of, _)| *of == table).map(|(_, bytes)| bytes);
            let end = self.write_table(table, bytes, of_table, values, plan.repetition, clock)?;
            last = last.max(end);
        }
        if tables > 1 {
            self.prolong_first(last, seconds(clock.as_millis()))?;
        }
        Ok(plan.repetition)
    }

    /// Sorts the changes by table. The changes of keys, which have no table, come first.
    fn sort(&mut self, changes: &mut [Change]) -> Result<(), CommandError> {
        let tables = self.tables()?;
        if !changes.is_sorted_by_key(|change| change.table(tables)) {
            changes.sort_by_key(|change| change.table(tables));
        }
        Ok(())
    }

    fn plan(
        &mut self,
        changes: &[Change],
        values: &[u8],
        mut repetition: Repetition,
        clock: Timestamp,
    ) -> Result<Plan, CommandError> {
        let now = seconds(clock.as_millis());
        let (tables, mut grown, mut is_divided) = (self.tables, Vec::new(), false);
        for of_table in changes.chunk_by(|one, next| one.table(tables) == next.table(tables)) {
            let Some(table) = of_table.first().and_then(|change| change.table(tables)) else {
                continue;
            };
            let bytes = self.grown(table, of_table, values, &mut repetition, now)?;
            if let Some(bytes) = bytes {
                is_divided |= bytes.len() > DIVIDED_BYTES && tables < MAX_TABLES;
                grown.push((table, bytes));
            }
        }
        Ok(Plan { grown, is_divided, repetition })
    }

    /// Returns the bytes of a copy of the table with the number `table`. The copy is larger if the
    /// table has too little room for the changes, and smaller if the table has far too much room.
    /// Returns `None` if the table can stay as it is. Sets `repetition` to [`Repetition::AtTime`]
    /// if the changes need new room, because the effect of the command then depends on the clock.
    fn grown(
        &mut self,
        table: usize,
        changes: &[Change],
        values: &[u8],
        repetition: &mut Repetition,
        now: u32,
    ) -> Result<Option<Vec<u8>>, CommandError> {
        let too_large = CommandError::Invalid("number of entries: a table is full");
        self.read_table(table, |table| {
            let mut more = Room::default();
            for change in changes {
                let Location::Entry(id) = change.location else { continue };
                let value = &values[change.value.clone()];
                if change.existed && is_short(value) {
                    continue;
                }
                let room = match table {
                    Some(table) => table.room_for(change.slot, id, value),
                    None => Room::of(value),
                };
                more = Room { slots: more.slots + room.slots, units: more.units + room.units };
            }
            if more != Room::default() {
                *repetition = Repetition::AtTime;
            }
            let Some(table) = table else {
                let empty = Table::with_room(more).map_err(|_| too_large)?;
                return Ok(Some(empty.into_bytes()));
            };
            let is_sparse = *repetition == Repetition::AtTime
                && table.units() > SHRINKING_UNITS
                && (table.filled() + more.slots + more.units) * 4 < table.units();
            if table.has_room(more) && !is_sparse {
                return Ok(None);
            }
            table.rebuilt(more, now, |_| true).map(Some).map_err(|_| too_large)
        })?
    }

    /// Divides the table that is next in the order of linear hashing: moves a part of its entries
    /// to a new table, and adds one to the number of tables.
    fn divide(&mut self, clock: Timestamp) -> Result<(), CommandError> {
        let (tables, now) = (self.tables, seconds(clock.as_millis()));
        let (old, new) = (next_divided(tables), tables);
        let part = |of: usize| {
            move |table: Option<&Table<&[u8]>>| match table {
                Some(table) => table
                    .rebuilt(Room::default(), now, |id| table_of(*id, tables + 1) == of)
                    .map(|bytes| (bytes, table.last_end())),
                None => Table::with_room(Room::default()).map(|table| (table.into_bytes(), now)),
            }
        };
        for of in [new, old] {
            // Both new tables are built from the old table before the old table is replaced.
            let part = self.read_table(old, part(of))?;
            let (bytes, end) = part.map_err(|_| CommandError::NotWritten)?;
            let key = self.writable_table(of)?;
            replace(key, &bytes)?;
            expire(key, until(end, now))?;
        }
        self.tables = tables + 1;
        let mut bytes = self.writable_table(0)?.as_string_dma();
        let bytes = bytes.as_mut().map_err(|_| CommandError::NotWritten)?;
        let mut first = Table::open(&mut bytes[..]).ok_or(CommandError::NotATable)?;
        first.set_tables(tables + 1);
        Ok(())
    }

    /// Writes the changed entries of the table with the number `table`. If `grown` is set, it
    /// replaces the bytes of the table before that. Returns the time in seconds at which the table
    /// expires.
    fn write_table(
        &mut self,
        table: usize,
        grown: Option<Vec<u8>>,
        changes: &[Change],
        values: &[u8],
        repetition: Repetition,
        clock: Timestamp,
    ) -> Result<u32, CommandError> {
        let now = seconds(clock.as_millis());
        let key = self.writable_table(table)?;
        let is_replaced = grown.is_some();
        if let Some(bytes) = grown {
            replace(key, &bytes)?;
        }
        let mut bytes = key.as_string_dma().map_err(|_| CommandError::NotWritten)?;
        let mut packed = Table::open(&mut bytes[..]).ok_or(CommandError::NotATable)?;
        let (mut last, mut created) = (0, 0);
        for change in changes {
            let Location::Entry(id) = change.location else { continue };
            let end = |until_now: Option<u32>| {
                let until_now = until_now.filter(|_| !change.is_end_moved);
                let end = until_now.unwrap_or_else(|| {
                    seconds(clock.after(change.live).as_millis()).saturating_add(1)
                });
                last = last.max(end);
                end
            };
            let value = &values[change.value.clone()];
            packed.set(change.slot, id, value, end).map_err(|_| CommandError::NotWritten)?;
            created += usize::from(!change.existed);
        }
        if repetition == Repetition::AtTime {
            packed.sweep(SWEEP + SWEEP_FOR_EACH * created, now);
        }
        let known = packed.last_end();
        if last > known {
            // The expiry of the table is set a little later than its last entry needs. It therefore
            // has to be moved less often.
            packed.set_last_end(last.saturating_add((last - now.min(last)) / 8 + 1));
        }
        let (end, is_moved) = (packed.last_end(), last > known);
        if is_moved || is_replaced {
            expire(key, until(end, now))?;
        }
        Ok(end)
    }

    /// Moves the expiry of the first table to `last`, if the first table expires earlier than that.
    /// `last` and `now` are in seconds. The first table must not expire before another table,
    /// because it contains the number of tables.
    fn prolong_first(&mut self, last: u32, now: u32) -> Result<(), CommandError> {
        if self.read_table(0, |table| table.is_some_and(|table| table.last_end() >= last))? {
            return Ok(());
        }
        let key = self.writable_table(0)?;
        let mut bytes = key.as_string_dma().map_err(|_| CommandError::NotWritten)?;
        let mut first = Table::open(&mut bytes[..]).ok_or(CommandError::NotATable)?;
        first.set_last_end(last);
        expire(key, until(last, now))
    }
}

/// The changes that must be made to the tables before the changed entries are written.
struct Plan {
    /// For each table that is replaced, its number and its new bytes.
    grown: Vec<(usize, Vec<u8>)>,
    /// Whether a table must be divided before the entries are written, because a table would become
    /// too large.
    is_divided: bool,
    repetition: Repetition,
}

impl Change {
    /// Returns the number of the table that contains the changed state. Returns `None` if the state
    /// has a key of its own.
    fn table(&self, tables: usize) -> Option<usize> {
        match self.location {
            Location::Entry(id) => Some(table_of(id, tables)),
            Location::Key(_) => None,
        }
    }

    /// Returns whether the effect of the change does not depend on the server's clock. This is so
    /// if the location had a state before, still has a state, and the state's expiry does not move.
    const fn is_independent_of_the_clock(&self) -> bool {
        self.existed && !self.is_end_moved && self.value.start < self.value.end
    }
}

/// Returns the milliseconds from `now` to `end`, but at least 1,000. `now` and `end` are in
/// seconds.
fn until(end: u32, now: u32) -> u64 {
    u64::from(end.saturating_sub(now).max(1)) * 1_000
}
