//! What a simulation found, told: as a table, as JSON, as a page.

mod caveats;
pub(crate) mod html;
mod number;
mod side_by_side;
mod sparkline;
pub(crate) mod table;
mod times;
