//! A limit as one item, which contains the whole state. One compare-and-swap changes the state.

use tollgate_core::Cell;

use super::{ExpiryMargin, ReadItems, View};
use crate::wire::{Command, Item, MAX_VALUE, Stored};

/// The size in bytes of the encoding of an empty state, for example of a concurrency limit without
/// permits. An empty state is not stored.
const KIND: usize = 1;

/// The compare-and-swap token of the item that was read. `None` if the item did not exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellItem(Option<u64>);

impl CellItem {
    pub(super) fn view(stored: Option<&Stored>) -> View {
        let token = stored.map(|stored| stored.token);
        let cell = stored.and_then(|stored| Cell::from_bytes(&stored.value));
        let is_invalid = stored.is_some() && cell.is_none();
        View { cell, is_invalid, is_torn: false, held: ReadItems::Cell(Self(token)) }
    }

    pub(super) fn changes<'n>(
        self,
        key: &'n [u8],
        next: Option<&Cell>,
        expires: impl Fn(ExpiryMargin) -> i32,
    ) -> Option<Vec<Command<'n>>> {
        let value = next.map(Cell::to_bytes).unwrap_or_default();
        if value.len() <= KIND {
            return Some(self.0.map(|token| Command::Remove { key, token }).into_iter().collect());
        }
        if value.len() > MAX_VALUE {
            return None;
        }
        let item = Item { value, flags: 0, expires: expires(ExpiryMargin::None) };
        Some(vec![match self.0 {
            Some(token) => Command::Replace { key, item, token },
            None => Command::Add { key, item },
        }])
    }
}
