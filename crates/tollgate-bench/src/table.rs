//! Tables of figures, as they stand in the documentation.

use comfy_table::{CellAlignment, Table, presets};

/// A table without rows, in Markdown: words in the first columns, so many, and figures in the others.
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
