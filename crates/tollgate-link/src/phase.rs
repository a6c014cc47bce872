//! The phases of a link.

use std::sync::Arc;

/// The state of a link.
#[derive(Debug)]
pub enum Phase<C> {
    /// There is no connection, and the first attempt to open one is under way. Callers wait for the
    /// connection within their deadlines.
    Connecting,
    /// A connection is available.
    Up(Arc<C>),
    /// There is no connection, and callers do not wait for a connection.
    Down,
}

impl<C> Clone for Phase<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Connecting => Self::Connecting,
            Self::Up(connection) => Self::Up(Arc::clone(connection)),
            Self::Down => Self::Down,
        }
    }
}
