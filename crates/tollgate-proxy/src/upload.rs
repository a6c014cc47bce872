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

/// The shortest time after which a response of the upstream may have been caused by a client that
/// does not send the rest of its body. A response before this time is the upstream's own decision,
/// for example to refuse a request without reading its body.
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

    /// Records that the upstream is ready for more bytes of the body, and that the client has not
    /// sent these bytes yet.
    pub(crate) fn wait_for_client(&self) {
        self.0.waits_for_client.store(true, Ordering::Release);
    }

    /// Returns whether the upstream is waiting for the client to send more of the body.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.is_under_way() && self.0.waits_for_client.load(Ordering::Acquire)
    }

    /// Returns whether the client may have caused a response of the upstream that arrives now, by not
    /// sending the rest of the body: the body failed, or the upstream is waiting for the client and
    /// the request began some time ago. A client that sends single bytes does not start this time
    /// again.
    pub(crate) fn is_withheld(&self) -> bool {
        // The body may be dropped by now, if the upstream has closed its connection.
        let waits = self.0.waits_for_client.load(Ordering::Acquire);
        let waited = || waits && self.0.began.elapsed() >= SHORTEST_STALL;
        !self.is_complete() && (self.fault().is_some() || waited())
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
