//! The tables of the page of bounds.
//!
//! In a cell, `{NAME}` stands for the value of the constant with this name, `{module::NAME}` for
//! the value of the constant in this module, and `{Type::field}` for the default value of a field.
//! A unit may follow: `{NAME:KiB}`.

mod sizes;
mod store;
mod times;
mod units;

/// A table of the page.
pub(super) struct Table {
    /// The name in the marks of the page.
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) rows: &'static [&'static [&'static str]],
}

/// Columns for the units that a fault adds to a limit.
const UNITS: &[&str] =
    &["When it is reached", "Units above the limit, at most", "What happens then", "In the code"];

/// Columns for bounds of time, memory and connections.
const BOUNDS: &[&str] =
    &["Bound", "Default", "When it is reached", "What happens then", "In the code"];

/// Every table, in the order of the page.
pub(super) const TABLES: &[Table] = &[
    Table { name: "one process", columns: UNITS, rows: units::ONE_PROCESS },
    Table { name: "outage", columns: UNITS, rows: units::OUTAGE },
    Table { name: "failover", columns: UNITS, rows: units::FAILOVER },
    Table { name: "moves", columns: UNITS, rows: units::MOVES },
    Table { name: "refused units", columns: units::REFUSED_COLUMNS, rows: units::REFUSED },
    Table { name: "times of decisions", columns: BOUNDS, rows: times::DECISIONS },
    Table { name: "times of clients", columns: BOUNDS, rows: times::CLIENTS },
    Table { name: "times of operation", columns: BOUNDS, rows: times::OPERATION },
    Table { name: "requests", columns: BOUNDS, rows: sizes::REQUESTS },
    Table { name: "policy", columns: BOUNDS, rows: sizes::POLICY },
    Table { name: "connections", columns: BOUNDS, rows: sizes::CONNECTIONS },
    Table { name: "http and grpc", columns: BOUNDS, rows: sizes::HTTP },
    Table { name: "resp", columns: BOUNDS, rows: sizes::RESP },
    Table { name: "administration", columns: BOUNDS, rows: sizes::ADMINISTRATION },
    Table { name: "redis", columns: BOUNDS, rows: store::REDIS },
];
