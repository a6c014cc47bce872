//! `tollgate simulate`, run as a person runs it.

mod compare;
mod hostile;
mod inputs;
mod setup;
mod shipped;
