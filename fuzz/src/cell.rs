//! Cells as bytes, as a store outside of the process returns them.

use tollgate_core::Cell;

/// Bytes that are a cell are exactly the bytes that the cell is written as.
pub fn check(data: &[u8]) {
    if let Some(cell) = Cell::from_bytes(data) {
        assert_eq!(cell.to_bytes(), data);
    }
}
