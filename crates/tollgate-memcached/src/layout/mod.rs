//! The layout of a limit on the server: one item, or two items in the layout of an older limiter.

mod cell;
mod pair;

use tollgate_core::{Algorithm, Cell, Limit};

use crate::key::reset_name;
use crate::wire::{Command, Stored};
use cell::CellItem;
use pair::Pair;

/// The layout in which limits are stored in memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Every limit is one item, whatever its algorithm. A charge needs one read and one
    /// compare-and-swap.
    #[default]
    Cell,
    /// A fixed window is two items that programs of an older limiter also read and write. The item
    /// with the plain name contains the count in decimal. The item with the suffix `:reset_at`
    /// contains the second at which the window ends. Limits of other algorithms are one item. Units
    /// of such a fixed window cannot be reserved, because the two items cannot store reservations.
    Pairs,
}

/// The names of the items of one limit and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// The name of the only item.
    Cell(Box<[u8]>),
    /// The names of the count item and the reset item.
    Pair { count: Box<[u8]>, reset: Box<[u8]> },
}

impl Names {
    /// Returns the names of the items of `limit`. `name` is the name of the first item.
    pub(crate) fn new(name: Box<[u8]>, limit: &Limit, layout: Layout) -> Self {
        match (layout, limit.algorithm()) {
            (Layout::Pairs, Algorithm::FixedWindow(_)) => {
                Self::Pair { reset: reset_name(&name), count: name }
            }
            _ => Self::Cell(name),
        }
    }

    /// Returns the name of the first item. The name identifies the limit and the subject.
    pub(crate) fn first(&self) -> &[u8] {
        match self {
            Self::Cell(name) | Self::Pair { count: name, .. } => name,
        }
    }

    /// Returns the names in the order in which the items must be read.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &[u8]> {
        let (first, second) = match self {
            Self::Cell(name) => (name, None),
            // The count comes first. The documentation of the module `pair` explains the order.
            Self::Pair { count, reset } => (count, Some(reset)),
        };
        std::iter::once(&**first).chain(second.map(|name| &**name))
    }

    /// Decodes the items that were read. `stored` must be in the order of
    /// [`in_order`](Self::in_order).
    pub(crate) fn view(&self, stored: Vec<Option<Stored>>) -> View {
        let mut stored = stored.into_iter();
        let mut next = || stored.next().flatten();
        match self {
            Self::Cell(_) => CellItem::view(next().as_ref()),
            Self::Pair { .. } => {
                let count = next();
                Pair::view(count.as_ref(), next().as_ref())
            }
        }
    }
}

/// A limit's state as it was read, with the tokens by which later changes of other nodes are
/// detected.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) cell: Option<Cell>,
    /// Whether an item contained data that is not a valid state.
    pub(crate) is_invalid: bool,
    /// Whether the server dropped one of the two items before its expiry, as the other item shows.
    pub(crate) is_torn: bool,
    held: ReadItems,
}

#[derive(Clone, Copy, Debug)]
enum ReadItems {
    Cell(CellItem),
    Pair(Pair),
}

/// The additional time for which an item is kept, beyond the end of its state and the clock skew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryMargin {
    /// The item has no additional time.
    None,
    /// A short additional time, for the item of a pair that must expire last.
    Longer,
}

impl View {
    /// Returns the commands that change the stored state to `next`. This view has the state and the
    /// tokens that were read. Each command must be executed before the next command is sent. If
    /// another node changed the item of a command first, the command fails and nothing is counted.
    /// `expires` computes the expiry of an item.
    ///
    /// Returns `None` if the state is larger than the server accepts, or if the layout of two items
    /// cannot store the state.
    pub(crate) fn changes<'n>(
        &self,
        names: &'n Names,
        next: Option<&Cell>,
        expires: impl Fn(ExpiryMargin) -> i32,
    ) -> Option<Vec<Command<'n>>> {
        match (&self.held, names) {
            // A count item and a reset item cannot store reservations.
            (ReadItems::Pair(_), _) if matches!(next, Some(Cell::Reserved(_))) => None,
            (ReadItems::Pair(pair), Names::Pair { count, reset }) => {
                Some(pair.changes(count, reset, next, expires))
            }
            (ReadItems::Cell(item), names) => item.changes(names.first(), next, expires),
            // Callers pass the names that the view was made from.
            (ReadItems::Pair(_), Names::Cell(_)) => None,
        }
    }
}
