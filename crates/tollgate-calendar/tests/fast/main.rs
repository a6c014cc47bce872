//! Tests of calendar windows in all time zones of the world, and on known dates.

mod known;
mod model;
mod zones;
