//! The real log under `examples/`.

use std::path::PathBuf;

use super::super::{Input, Log, Options};

#[test]
fn every_line_is_an_entry_in_order() {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/access-2015-05.log"));
    let mut log = Log::open(&[Input::File(path)], &Options::default()).unwrap();
    let (mut entries, mut not_modified, mut clients) = (0, 0, std::collections::HashSet::new());
    let mut last = 0;
    while let Some(entry) = log.next_entry().unwrap() {
        assert!(entry.time >= last);
        last = entry.time;
        entries += 1;
        not_modified += u32::from(entry.status == 304);
        clients.insert(entry.address().unwrap());
        assert!(entry.method().is_some() && entry.target().is_some() && entry.status >= 200);
    }
    assert_eq!((entries, not_modified, clients.len()), (10_000, 445, 1753));
    assert_eq!((log.issues().malformed, log.issues().late), (0, 0));
    assert_eq!(Some(log.bytes_read()), log.bytes_total());
}
