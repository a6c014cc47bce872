use std::collections::HashMap;

use super::*;

/// A generator of numbers, the same in every run.
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
        _ => rest(b'h', 46 + 38 * (kind as usize - 3)),
    }
}

/// Sets an entry as the keyspace does: it grows the table if there is no room.
fn set(table: &mut Table<Vec<u8>>, id: Id, value: &[u8], end: u32, now: u32) {
    let needed = slots_of(value.len());
    if !table.has_room(needed) {
        *table = Table::open(table.rebuilt(needed, now).unwrap()).unwrap();
    }
    table.set(0, id, value, |_| end).unwrap();
}

fn drop_value(_: &[u8]) {}

#[test]
fn a_table_is_a_map_over_random_operations() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let mut table = Table::<Vec<u8>>::with_room(0).unwrap();
        let mut expected = HashMap::new();
        let ids = 1 + numbers.below(60);
        for _ in 0..600 {
            let id = id(numbers.below(ids));
            if numbers.below(4) == 0 {
                table.set(0, id, &[], |_| 0).unwrap();
                expected.remove(&id);
            } else {
                let value = value(numbers.below(7), numbers.next() as u8);
                set(&mut table, id, &value, 100, 0);
                expected.insert(id, value);
            }
            table.sweep(50);
        }
        for number in 0..ids {
            let got = table.read(id(number), <[u8]>::to_vec).map(|(value, _)| value);
            assert_eq!(got.as_ref(), expected.get(&id(number)), "seed {seed}");
        }
        let used: usize = expected.values().map(|value| slots_of(value.len())).sum();
        assert_eq!(table.used(), used, "seed {seed}");
    }
}

#[test]
fn equal_entries_are_equal_bytes_in_any_order() {
    let entries: Vec<_> = (0..300).map(|number| (id(number), value(number % 5, 7))).collect();
    let fill = |entries: &mut dyn Iterator<Item = &(Id, Vec<u8>)>| {
        let mut table = Table::<Vec<u8>>::with_room(700).unwrap();
        entries.for_each(|(id, value)| table.set(0, *id, value, |_| 9).unwrap());
        table.into_bytes()
    };
    assert_eq!(fill(&mut entries.iter()), fill(&mut entries.iter().rev()));
}

#[test]
fn sweeps_and_growth_remove_what_has_ended_and_nothing_else() {
    let mut table = Table::<Vec<u8>>::with_room(100).unwrap();
    for number in 0..100 {
        let end = if number % 2 == 0 { 10 } else { 20 };
        table.set(0, id(number), &value(0, 1), |_| end).unwrap();
    }
    let grown = Table::open(table.rebuilt(0, 10).unwrap()).unwrap();
    assert_eq!(grown.used(), 50);
    for _ in 0..60 {
        table.sweep(11);
    }
    assert_eq!(table.used(), 50);
    for number in 0..100 {
        assert_eq!(table.read(id(number), drop_value).is_some(), number % 2 == 1);
        assert_eq!(grown.read(id(number), drop_value).is_some(), number % 2 == 1);
    }
}

#[test]
fn a_subject_needs_at_most_forty_eight_bytes() {
    let mut table = Table::<Vec<u8>>::with_room(0).unwrap();
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
        if length >= 4 {
            bytes[..4].copy_from_slice(&MAGIC);
        }
        let Some(mut table) = Table::open(bytes) else { continue };
        for number in 0..40 {
            let _ = table.read(id(number), drop_value);
            let _ =
                table.set(number as usize, id(number), &value(number % 7, 3), |_| number as u32);
            let _ = table.set(0, id(number + 1), &[], |_| 0);
            table.sweep(u32::MAX / 2);
            let _ = table.rebuilt(3, number as u32);
        }
    }
    assert_eq!(Table::<Vec<u8>>::with_room(usize::MAX / 8).unwrap_err(), NoRoom);
}

/// A sweep removes the slots of a long value one at a time, and may stop between them.
#[test]
fn what_a_sweep_left_of_a_long_value_does_not_become_part_of_the_next_one() {
    let mut table = Table::<Vec<u8>>::with_room(40).unwrap();
    let (long, longer) = (value(8, 1), value(9, 2));
    assert!(slots_of(long.len()) > SWEEP);
    table.set(0, id(1), &long, |_| 5).unwrap();
    let home = table.find(&slot_key(id(1), 0)).unwrap();
    table.set_header(8, home as u32);
    table.sweep(9);
    assert!(table.read(id(1), drop_value).is_none() && table.used() > 0);
    for whole in [&longer, &long, &value(0, 3)] {
        table.set(0, id(1), whole, |_| 20).unwrap();
        assert_eq!(table.read(id(1), <[u8]>::to_vec).unwrap().0, *whole);
        assert_eq!(table.used(), slots_of(whole.len()));
    }
}
