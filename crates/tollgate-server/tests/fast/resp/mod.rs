//! The Redis-protocol listener, called over real connections.

mod charges;
mod hostile;
mod kit;
mod lifetime;
mod order;
mod reservations;
mod session;
mod throttle;
mod transactions;
