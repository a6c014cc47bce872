//! Functions that wait for several futures concurrently.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Waits for all `futures`, and returns their outputs in the order of `futures`.
///
/// The futures run concurrently on the caller's task. Use this function for a few futures only,
/// because all of them are polled whenever one of them wakes.
pub(super) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut all = Poll::Ready(());
        for (future, output) in &mut waiting {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => all = Poll::Pending,
                }
            }
        }
        all
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

/// Waits for two futures of different types, and returns both outputs.
pub(super) async fn join_pair<A: Future, B: Future>(one: A, other: B) -> (A::Output, B::Output) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(output) = one.as_mut().poll(context)
        {
            first = Some(output);
        }
        if second.is_none()
            && let Poll::Ready(output) = other.as_mut().poll(context)
        {
            second = Some(output);
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}
