use proptest::prelude::*;

use super::*;

fn text(text: &str) -> Value {
    Value::BulkString(text.as_bytes().into())
}

fn node(host: &str, port: i64) -> Value {
    Value::Array(vec![text(host), Value::Int(port), text("id"), Value::Array(Vec::new())])
}

fn entry(first: i64, last: i64, nodes: &[Value]) -> Value {
    Value::Array([&[Value::Int(first), Value::Int(last)][..], nodes].concat())
}

fn read(entries: &[Value]) -> Result<Layout, LayoutError> {
    Layout::read(&Value::Array(entries.to_vec()), "10.0.0.9")
}

fn at(host: &str, port: u16) -> NodeAddress {
    NodeAddress::new(host, port).unwrap()
}

#[test]
fn a_reply_reports_who_keeps_what() {
    let layout = read(&[
        entry(8_000, 16_383, &[node("10.0.0.2", 7000)]),
        entry(0, 99, &[node("10.0.0.1", 7000), node("10.0.0.3", 7000), node("10.0.0.3", 7000)]),
        entry(200, 299, &[node("10.0.0.1", 7000), node("10.0.0.3", 7000)]),
    ]);
    let first = GroupLayout {
        primary: at("10.0.0.1", 7000),
        replicas: vec![at("10.0.0.3", 7000)],
        slots: vec![0..=99, 200..=299],
    };
    let second = GroupLayout {
        primary: at("10.0.0.2", 7000),
        replicas: Vec::new(),
        slots: vec![8_000..=16_383],
    };
    assert_eq!(layout, Ok(Layout { groups: vec![first, second] }));
}

#[test]
fn a_node_without_a_host_is_where_it_was_asked() {
    for host in [text(""), text("?"), Value::Nil] {
        let nowhere = Value::Array(vec![host, Value::Int(7000)]);
        let layout = read(&[entry(0, 16_383, &[nowhere])]).unwrap();
        assert_eq!(layout.groups[0].primary, at("10.0.0.9", 7000));
    }
}

#[test]
fn what_is_no_layout_says_why() {
    let one = node("a", 1);
    let of = |first, last| read(&[entry(first, last, std::slice::from_ref(&one))]);
    assert_eq!(read(&[]), Err(LayoutError::Empty));
    assert_eq!(Layout::read(&Value::Nil, "a"), Err(LayoutError::Form));
    assert_eq!(read(&[Value::Int(1)]), Err(LayoutError::Form));
    assert_eq!(read(&[entry(0, 1, &[])]), Err(LayoutError::Form));
    for (first, last) in [(-1, 5), (5, 16_384), (6, 5), (i64::MIN, i64::MAX)] {
        assert_eq!(of(first, last), Err(LayoutError::Slot), "{first}-{last}");
    }
    for port in [0, -1, 65_536] {
        assert_eq!(read(&[entry(0, 1, &[node("a", port)])]), Err(LayoutError::Node));
    }
    let overlap = [entry(0, 9, &[node("a", 1)]), entry(9, 12, &[node("b", 1)])];
    assert_eq!(read(&overlap), Err(LayoutError::Overlap(9)));
    let many: Vec<_> = (0..=1_000).map(|slot| entry(slot, slot, &[node("a", slot + 1)])).collect();
    assert_eq!(read(&many), Err(LayoutError::Nodes));
    assert!(read(&many[1..]).is_ok());
}

/// Generates nested values, as a faulty or hostile server may send them.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (-2_i64..20_000).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::BulkString),
        "[a-z:.]{0,6}".prop_map(Value::SimpleString),
        Just(Value::Nil),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::Array))
}

proptest! {
    #[test]
    fn any_reply_is_a_layout_or_an_error(value in any_value()) {
        if let Ok(layout) = Layout::read(&value, "host") {
            let slots = layout.groups.iter().flat_map(|group| group.slots.iter().cloned().flatten());
            prop_assert!(slots.count() <= usize::from(SLOTS));
        }
    }
}
