//! The windows of calendars: those of the time zones of the world, and known dates.

mod known;
mod model;
mod zones;
