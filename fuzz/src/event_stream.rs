//! Server-sent events of a response.

#[path = "../../crates/tollgate/src/tower/meter/events.rs"]
#[allow(dead_code, unreachable_pub)]
mod events;

use events::{Events, Piece};

/// Checks that a stream gives the same events however it is split.
pub fn check(data: &[u8]) {
    let Some((stream, place)) = crate::cut(data) else { return };
    let (first, rest) = stream.split_at(place);
    assert_eq!(read(&[stream]), read(&[first, rest]));
}

fn read(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut ended, mut data) = (Vec::new(), Vec::new());
    let mut events = Events::default();
    for piece in pieces {
        events.push(piece, &mut |piece| match piece {
            Piece::Data(bytes) => data.extend_from_slice(bytes),
            Piece::End => ended.push(std::mem::take(&mut data)),
        });
    }
    (ended, data)
}
