//! Tables of measured numbers, in the form in which the documentation contains them.

use comfy_table::{CellAlignment, Table, presets};

/// Creates a Markdown table without rows. The first `words` columns contain text. The other columns
/// contain numbers.
#[must_use]
pub fn of_figures<const COLUMNS: usize>(header: [&str; COLUMNS], words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
