//! The result of a simulation as a table, as JSON and as an HTML page.

mod caveats;
pub(crate) mod html;
pub(crate) mod number;
mod side_by_side;
mod sparkline;
pub(crate) mod table;
mod times;
