//! Waiting for several things at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// The outputs of all `futures`, in their order, once the last is there.
///
/// They run side by side on the caller's task. For a few: each is polled whenever one wakes.
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

/// The outputs of two futures that are not of one kind, once both are there.
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
