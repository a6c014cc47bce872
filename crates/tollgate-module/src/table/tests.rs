use std::collections::HashMap;

use super::*;

/// A generator of pseudorandom numbers, which are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn id(number: u64) -> Id {
    let mut numbers = Numbers(number);
    let mut id = [0; ID_BYTES];
    id[..8].copy_from_slice(&numbers.next().to_be_bytes());
    id
}

fn value(kind: u64, byte: u8) -> Vec<u8> {
    let rest = |tag: u8, length: usize| {
        let mut value = vec![byte; length];
        value[0] = tag;
        value
    };
    match kind {
        0 => rest(b'f', 15),
        1 => rest(b't', 15),
        2 => rest(b'r', 8),
        3 => rest(b'e', 22),
        4 => rest(b'w', 15),
        5 => rest(b'w', 29 + 14 * usize::from(byte)),
        _ => rest(b'h', 46 + 38 * (kind as usize - 3)),
    }
}

/// Sets an entry in the same way as the keyspace: rebuilds the table if there is no room.
fn set(table: &mut Table<Vec<u8>>, id: Id, value: &[u8], end: u32, now: u32) {
    let needed = table.room_for(0, id, value);
    if !table.has_room(needed) {
        *table = Table::open(table.rebuilt(needed, now, |_| true).unwrap()).unwrap();
    }
    table.set(0, id, value, |_| end).unwrap();
}

const fn slots(slots: usize) -> Room {
    Room { slots, units: 0 }
}

#[test]
fn a_table_is_a_map_over_random_operations() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let mut table = Table::<Vec<u8>>::with_room(Room::default()).unwrap();
        let mut expected = HashMap::new();
        let ids = 1 + numbers.below(60);
        for _ in 0..600 {
            let id = id(numbers.below(ids));
            if numbers.below(4) == 0 {
                table.set(0, id, &[], |_| 0).unwrap();
                expected.remove(&id);
            } else {
                let value = value(numbers.below(8), numbers.next() as u8);
                set(&mut table, id, &value, 100, 0);
                expected.insert(id, value);
            }
            table.sweep(8, 50);
        }
        for number in 0..ids {
            let got = table.read(id(number)).map(|(value, _)| value);
            assert_eq!(got, expected.get(&id(number)).map(|value| &value[..]), "seed {seed}");
        }
        assert_eq!(table.used(), expected.len(), "seed {seed}");
    }
}

#[test]
fn equal_short_entries_are_equal_bytes_in_any_order() {
    let entries: Vec<_> = (0..300).map(|number| (id(number), value(number % 3, 7))).collect();
    let fill = |entries: &mut dyn Iterator<Item = &(Id, Vec<u8>)>| {
        let mut table = Table::<Vec<u8>>::with_room(slots(700)).unwrap();
        entries.for_each(|(id, value)| table.set(0, *id, value, |_| 9).unwrap());
        table.into_bytes()
    };
    assert_eq!(fill(&mut entries.iter()), fill(&mut entries.iter().rev()));
}

#[test]
fn sweeps_and_growth_remove_what_has_ended_and_nothing_else() {
    let mut table = Table::<Vec<u8>>::with_room(slots(100)).unwrap();
    for number in 0..100 {
        let end = if number % 2 == 0 { 10 } else { 20 };
        table.set(0, id(number), &value(0, 1), |_| end).unwrap();
    }
    let grown = Table::open(table.rebuilt(slots(0), 10, |_| true).unwrap()).unwrap();
    assert_eq!(grown.used(), 50);
    for _ in 0..60 {
        table.sweep(8, 11);
    }
    assert_eq!(table.used(), 50);
    for number in 0..100 {
        assert_eq!(table.read(id(number)).is_some(), number % 2 == 1);
        assert_eq!(grown.read(id(number)).is_some(), number % 2 == 1);
    }
}

#[test]
fn a_subject_needs_at_most_forty_eight_bytes() {
    let mut table = Table::<Vec<u8>>::with_room(Room::default()).unwrap();
    for number in 0..50_000_usize {
        set(&mut table, id(number as u64), &value(0, 1), 9, 0);
        let bytes = table.bytes.len();
        assert!(number < 1_000 || bytes <= 48 * (number + 1), "{bytes} bytes for {number}");
    }
}

#[test]
fn no_bytes_make_it_fail() {
    let mut numbers = Numbers(3);
    for length in 0..700_usize {
        let mut bytes: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        if length >= HEADER_BYTES {
            bytes[..4].copy_from_slice(&MAGIC);
            let slots = (length - HEADER_BYTES) / UNIT_BYTES;
            let slots = slots - numbers.below(4).min(slots as u64) as usize;
            bytes[SLOTS..SLOTS + 4].copy_from_slice(&(slots as u32).to_le_bytes());
        }
        let Some(mut table) = Table::open(bytes) else { continue };
        for number in 0..40 {
            let _ = table.read(id(number));
            let value = value(number % 8, 3);
            let _ = table.has_room(table.room_for(number as usize, id(number), &value));
            let _ = table.set(number as usize, id(number), &value, |_| number as u32);
            let _ = table.set(0, id(number + 1), &[], |_| 0);
            table.sweep(8, u32::MAX / 2);
            let _ = table.rebuilt(slots(3), number as u32, |_| true);
        }
    }
    assert_eq!(Table::<Vec<u8>>::with_room(slots(usize::MAX / 8)).unwrap_err(), NoRoom);
}

/// The value of a sliding window grows by one block at a time. When the value outgrows its units of
/// memory, it moves to new units. A rebuild of the table makes the old units available again.
#[test]
fn a_growing_value_leaves_no_memory_behind() {
    let mut table = Table::<Vec<u8>>::with_room(Room::default()).unwrap();
    for blocks in 1..=60 {
        for number in 0..100 {
            set(&mut table, id(number), &value(5, blocks), 9, 0);
        }
    }
    let needed = 100 * (1 + units_of(29 + 14 * 60));
    assert!(table.units() < needed * 2, "{} units for {needed}", table.units());
    let rebuilt = table.rebuilt(Room::default(), 0, |_| true).unwrap();
    assert!(rebuilt.len() / UNIT_BYTES < needed * 3 / 2);
    for number in 0..100 {
        assert_eq!(table.read(id(number)).unwrap().0, value(5, 60));
    }
}

/// Checks that dividing a table puts each entry into exactly one of the two new tables.
#[test]
fn a_rebuild_keeps_what_it_is_asked_to() {
    let mut table = Table::<Vec<u8>>::with_room(Room::default()).unwrap();
    for number in 0..500 {
        set(&mut table, id(number), &value(number % 8, 1), 9, 0);
    }
    let parts = [0, 1].map(|bit| {
        let rebuilt = table.rebuilt(Room::default(), 0, |id| id[0] & 1 == bit).unwrap();
        Table::open(rebuilt).unwrap()
    });
    assert_eq!(parts[0].used() + parts[1].used(), 500);
    for number in 0..500 {
        let part = &parts[usize::from(id(number)[0] & 1)];
        assert_eq!(part.read(id(number)).unwrap().0, value(number % 8, 1));
    }
}
