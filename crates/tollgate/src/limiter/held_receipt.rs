//! The receipt of charges whose decision is not complete.

use crate::receipt::Receipt;

/// The receipt of charges that no other code can release yet. If this value is dropped with a
/// receipt, because the client disconnected during a store call, `abandon` receives the receipt.
pub(super) struct HeldReceipt<A: Fn(Receipt)> {
    pub(super) receipt: Option<Receipt>,
    abandon: A,
}

impl<A: Fn(Receipt)> HeldReceipt<A> {
    pub(super) const fn new(receipt: Option<Receipt>, abandon: A) -> Self {
        Self { receipt, abandon }
    }
}

impl<A: Fn(Receipt)> Drop for HeldReceipt<A> {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            (self.abandon)(receipt);
        }
    }
}
