//! The history checker: what is sound passes, and each thing that is not is found.

mod broken;
mod by_hand;
mod faults;
mod holds;
mod sound;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The answer of a store that waits for nothing.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store waits for something"),
    }
}
