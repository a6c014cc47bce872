//! Tests of `tollgate simulate` as users run it.

mod compare;
mod hostile;
mod inputs;
mod setup;
mod shipped;
mod suggest;
