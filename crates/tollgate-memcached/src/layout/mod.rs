//! How a limit lies in the server: as one item, or as the two of the old model.

mod cell;
mod pair;

use tollgate_core::{Algorithm, Cell, Limit};

use crate::key::reset_name;
use crate::wire::{Command, Stored};
use cell::CellItem;
use pair::Pair;

/// How limits lie in memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Every limit as one item, whatever its algorithm: one reading and one compare-and-swap.
    #[default]
    Cell,
    /// A fixed window as two items that programs of the old model read and write as well: the
    /// count in decimal under the name, and under the name with `:reset_at` the second at which the
    /// window is over. Limits of other algorithms as one item. Such a window cannot be reserved:
    /// there is no place for what is held.
    Pairs,
}

/// The names of the items of one limit and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// One item.
    Cell(Box<[u8]>),
    /// A count and its reset.
    Pair { count: Box<[u8]>, reset: Box<[u8]> },
}

impl Names {
    /// The names of the items of `limit` in which the first is called `name`.
    pub(crate) fn new(name: Box<[u8]>, limit: &Limit, layout: Layout) -> Self {
        match (layout, limit.algorithm()) {
            (Layout::Pairs, Algorithm::FixedWindow(_)) => {
                Self::Pair { reset: reset_name(&name), count: name }
            }
            _ => Self::Cell(name),
        }
    }

    /// The name that stands for all of them.
    pub(crate) fn first(&self) -> &[u8] {
        match self {
            Self::Cell(name) | Self::Pair { count: name, .. } => name,
        }
    }

    /// In the order in which they have to be read.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &[u8]> {
        let (first, second) = match self {
            Self::Cell(name) => (name, None),
            // The count first: see the pair.
            Self::Pair { count, reset } => (count, Some(reset)),
        };
        std::iter::once(&**first).chain(second.map(|name| &**name))
    }

    /// What was read of them, in that order.
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

/// A limit's state as it was read, and what proves that nobody changed it since.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) cell: Option<Cell>,
    /// Whether something lay there that is no state.
    pub(crate) is_junk: bool,
    /// Whether it shows that the server dropped an item before its end.
    pub(crate) is_torn: bool,
    held: Held,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Cell(CellItem),
    Pair(Pair),
}

/// By how much later than the state's end an item is forgotten, beyond the skew of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryMargin {
    /// Not at all.
    None,
    /// A little, so that of two items this one goes last.
    Longer,
}

impl View {
    /// The commands that turn what was read into `next`, each of which has to be done before the
    /// one after it; if one is outrun, nothing is counted. `expires` says when an item ends.
    ///
    /// `None` if the state is larger than what the server takes, or two items cannot hold it.
    pub(crate) fn changes<'n>(
        &self,
        names: &'n Names,
        next: Option<&Cell>,
        expires: impl Fn(ExpiryMargin) -> i32,
    ) -> Option<Vec<Command<'n>>> {
        match (&self.held, names) {
            // Two plain numbers have no place for what is reserved.
            (Held::Pair(_), _) if matches!(next, Some(Cell::Reserved(_))) => None,
            (Held::Pair(pair), Names::Pair { count, reset }) => {
                Some(pair.changes(count, reset, next, expires))
            }
            (Held::Cell(item), names) => item.changes(names.first(), next, expires),
            // A view is asked with the names that made it.
            (Held::Pair(_), Names::Cell(_)) => None,
        }
    }
}
