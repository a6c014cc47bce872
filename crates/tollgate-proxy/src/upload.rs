//! The progress of a request body, and the faults that end it.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tollgate_http::{CloseReason, Violation};

/// A handle to the progress of one request body. The body records the progress, and the task that
/// waits for the response reads it.
#[derive(Debug, Clone)]
pub(crate) struct Upload(Arc<Shared>);

/// The reason why a request body failed. All reasons are faults of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UploadFault {
    /// The body is larger than the limit.
    TooLarge,
    /// The client sent no data for too long.
    Stalled,
    /// The client sent data more slowly than the least rate.
    TooSlow,
    /// The framing of the body is invalid.
    Malformed(Violation),
    /// The client disconnected, or sent less than it announced.
    Broken,
}

impl From<UploadFault> for CloseReason {
    fn from(fault: UploadFault) -> Self {
        match fault {
            UploadFault::Stalled | UploadFault::TooSlow => Self::SlowRequest,
            UploadFault::TooLarge | UploadFault::Malformed(_) => Self::Malformed,
            UploadFault::Broken => Self::Client,
        }
    }
}

/// The shortest time for which an upstream waits for the rest of a body before it gives up. An
/// earlier response is the upstream's own decision, for example to refuse a request without reading
/// its body. A later response may have been caused by a client that does not send the rest.
const SHORTEST_STALL: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// The time at which a part of the body was last forwarded, in milliseconds since `began`.
    last_progress: AtomicU64,
    fault: OnceLock<UploadFault>,
    ended: AtomicBool,
    complete: AtomicBool,
    waits_for_client: AtomicBool,
    /// The time at which the upstream first waited for the client.
    first_wait: OnceLock<Instant>,
    forwarded: AtomicBool,
}

impl Upload {
    /// Begins the progress of a body. If `is_empty`, the body has arrived completely.
    pub(crate) fn begin(is_empty: bool) -> Self {
        Self(Arc::new(Shared {
            began: Instant::now(),
            last_progress: AtomicU64::new(0),
            fault: OnceLock::new(),
            ended: AtomicBool::new(false),
            complete: AtomicBool::new(is_empty),
            waits_for_client: AtomicBool::new(false),
            first_wait: OnceLock::new(),
            forwarded: AtomicBool::new(false),
        }))
    }

    /// Records that a part of the body was forwarded now.
    pub(crate) fn progress(&self) {
        self.0.waits_for_client.store(false, Ordering::Release);
        let elapsed = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last_progress.store(elapsed, Ordering::Relaxed);
    }

    /// Returns the time at which a part of the body was last forwarded, or the start of the request
    /// if no part was forwarded.
    pub(crate) fn last_progress(&self) -> Instant {
        self.0.began + Duration::from_millis(self.0.last_progress.load(Ordering::Relaxed))
    }

    /// Records that no further bytes of the body will be forwarded, because the body has ended or
    /// was dropped.
    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::Release);
    }

    /// Returns whether further bytes of the body may still be forwarded.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.0.ended.load(Ordering::Acquire)
    }

    /// Records that the complete body has arrived from the client.
    pub(crate) fn complete(&self) {
        self.progress();
        self.0.complete.store(true, Ordering::Release);
    }

    /// Returns whether the complete body has arrived from the client.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.complete.load(Ordering::Acquire)
    }

    /// Records that the proxy or the upstream is ready for more bytes of the body, and that the
    /// client has not sent these bytes yet.
    pub(crate) fn wait_for_client(&self) {
        // Before the request is forwarded, the proxy itself reads the body, and no upstream waits.
        if self.was_forwarded() {
            self.0.first_wait.get_or_init(Instant::now);
        }
        self.0.waits_for_client.store(true, Ordering::Release);
    }

    /// Returns whether the upstream is waiting for the client to send more of the body.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.is_under_way() && self.0.waits_for_client.load(Ordering::Acquire)
    }

    /// Returns whether the client may have caused a response of the upstream that arrives now, by not
    /// sending the rest of the body: the body failed, or the upstream is waiting for the client and
    /// first did so some time ago. A client that sends single bytes does not start this time again.
    pub(crate) fn is_withheld(&self) -> bool {
        // The body may be dropped by now, if the upstream has closed its connection.
        let waits = self.0.waits_for_client.load(Ordering::Acquire);
        let waited = self.0.first_wait.get().is_some_and(|since| since.elapsed() >= SHORTEST_STALL);
        !self.is_complete() && (self.fault().is_some() || (waits && waited))
    }

    /// Records that the request reached the forwarding service, and was not answered by a layer.
    pub(crate) fn forward(&self) {
        self.0.forwarded.store(true, Ordering::Release);
    }

    /// Returns whether the request reached the forwarding service. If not, a layer answered the
    /// request.
    pub(crate) fn was_forwarded(&self) -> bool {
        self.0.forwarded.load(Ordering::Acquire)
    }

    /// Records why the body failed. The first reason is kept.
    pub(crate) fn fail(&self, fault: UploadFault) {
        // Later faults are only consequences of the first.
        let _ = self.0.fault.set(fault);
    }

    pub(crate) fn fault(&self) -> Option<UploadFault> {
        self.0.fault.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// The bug: the time counted from the start of the request, so a service that refused a request
    /// at once seemed to have waited for its body if the request had waited inside the proxy.
    #[tokio::test(start_paused = true)]
    async fn an_immediate_refusal_was_not_refunded_after_a_wait_in_the_proxy() {
        let upload = Upload::begin(false);
        // The proxy reads JSON before the decision, and then the request waits for its limit.
        upload.wait_for_client();
        upload.progress();
        advance(60 * SHORTEST_STALL).await;
        upload.forward();
        upload.wait_for_client();
        assert!(!upload.is_withheld());
    }

    #[tokio::test(start_paused = true)]
    async fn single_bytes_do_not_start_the_time_again() {
        let upload = Upload::begin(false);
        upload.forward();
        upload.wait_for_client();
        advance(SHORTEST_STALL - MILLISECOND).await;
        assert!(!upload.is_withheld());
        upload.progress();
        upload.wait_for_client();
        advance(MILLISECOND).await;
        assert!(upload.is_withheld());
        upload.progress();
        assert!(!upload.is_withheld(), "the upstream has not read the last bytes yet");
        upload.wait_for_client();
        upload.end();
        assert!(upload.is_withheld(), "the upstream has closed its connection");
        upload.complete();
        assert!(!upload.is_withheld());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_failed_is_withheld_at_once() {
        let upload = Upload::begin(false);
        upload.forward();
        upload.fail(UploadFault::Broken);
        assert!(upload.is_withheld());
    }
}
