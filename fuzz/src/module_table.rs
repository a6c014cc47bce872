//! Tables of the server module, as a server loads them from a snapshot.

use crate::request::{ID_BYTES, Id};
use crate::table::{Room, Table};

/// No bytes make a table fail, and a table that is built entry by entry has each of them.
pub fn check(data: &[u8]) {
    let Some((rest, place)) = crate::cut(data) else { return };
    let (entries, bytes) = rest.split_at(place);
    let mut loaded = bytes.to_vec();
    if let Some(mut table) = Table::open(&mut loaded[..]) {
        change(&mut table, entries);
    }
    let Some(table) = Table::open(bytes) else {
        return build(entries);
    };
    let _ = table.rebuilt(Room::default(), 7, |id| id[0] & 1 == 0);
    let _ = (table.used(), table.filled(), table.units(), table.tables(), table.last_end());
    build(entries);
}

/// Splits the input into ids and values.
fn each(entries: &[u8]) -> impl Iterator<Item = (Id, &[u8])> {
    entries.chunks(40).filter_map(|chunk| {
        let (id, value) = chunk.split_first_chunk::<ID_BYTES>()?;
        Some((*id, value))
    })
}

fn change(table: &mut Table<&mut [u8]>, entries: &[u8]) {
    for (id, value) in each(entries) {
        let _ = table.read(id);
        let near = usize::from(id[0]);
        let _ = table.has_room(table.room_for(near, id, value));
        let _ = table.set(near, id, value, |end| end.unwrap_or(9));
        table.sweep(usize::from(id[1] & 15), u32::from(id[2]));
    }
    table.set_last_end(3);
    table.set_tables(2);
}

fn build(entries: &[u8]) {
    let Ok(mut table) = Table::<Vec<u8>>::with_room(Room::default()) else { return };
    for (id, value) in each(entries) {
        let room = table.room_for(0, id, value);
        if !table.has_room(room) {
            let rebuilt = table.rebuilt(room, 0, |_| true).expect("room for a few entries");
            table = Table::open(rebuilt).expect("a rebuilt table is one");
        }
        table.set(0, id, value, |_| 9).expect("there is room");
        let expected = Some(value).filter(|value| !value.is_empty());
        assert_eq!(table.read(id).map(|(found, _)| found), expected);
    }
}
