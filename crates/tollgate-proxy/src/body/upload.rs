use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{CloseReason, framing::Violation};

/// What becomes of one request body, seen by those who wait for the response to it.
#[derive(Debug, Clone)]
pub(crate) struct Upload(Arc<Shared>);

/// Why a request body failed; always the client's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UploadFault {
    /// It is larger than a request body may be.
    TooLarge,
    /// Nothing of it came for too long.
    Stalled,
    /// It came below the least rate.
    TooSlow,
    /// Its framing is unsound.
    Malformed(Violation),
    /// The client left, or sent less than it announced.
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

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// Milliseconds from `began`.
    last_progress: AtomicU64,
    fault: OnceLock<UploadFault>,
    ended: AtomicBool,
    complete: AtomicBool,
    waits_for_client: AtomicBool,
    forwarded: AtomicBool,
}

impl Upload {
    pub(crate) fn begin() -> Self {
        Self(Arc::new(Shared {
            began: Instant::now(),
            last_progress: AtomicU64::new(0),
            fault: OnceLock::new(),
            ended: AtomicBool::new(false),
            complete: AtomicBool::new(false),
            waits_for_client: AtomicBool::new(false),
            forwarded: AtomicBool::new(false),
        }))
    }

    /// Notes that a piece of the body went on.
    pub(crate) fn progress(&self) {
        self.0.waits_for_client.store(false, Ordering::Release);
        let elapsed = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last_progress.store(elapsed, Ordering::Relaxed);
    }

    /// When a piece of the body went on last, or when the request began.
    pub(crate) fn last_progress(&self) -> Instant {
        self.0.began + Duration::from_millis(self.0.last_progress.load(Ordering::Relaxed))
    }

    /// Notes that nothing of the body will go on any more.
    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::Release);
    }

    /// Whether more of the body may go on.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.0.ended.load(Ordering::Acquire)
    }

    /// Notes that all of the body has come from the client.
    pub(crate) fn complete(&self) {
        self.progress();
        self.0.complete.store(true, Ordering::Release);
    }

    /// Whether all of the body has come from the client.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.complete.load(Ordering::Acquire)
    }

    /// Notes that the upstream could take more of the body than the client has sent.
    pub(crate) fn wait_for_client(&self) {
        self.0.waits_for_client.store(true, Ordering::Release);
    }

    /// Whether the client keeps the upstream waiting for the body.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.is_under_way() && self.0.waits_for_client.load(Ordering::Acquire)
    }

    /// Notes that the request goes on to the upstream.
    pub(crate) fn forward(&self) {
        self.0.forwarded.store(true, Ordering::Release);
    }

    /// Whether the request went on to the upstream, and was not answered before.
    pub(crate) fn was_forwarded(&self) -> bool {
        self.0.forwarded.load(Ordering::Acquire)
    }

    /// Notes why the body failed; the first reason stays.
    pub(crate) fn fail(&self, fault: UploadFault) {
        // Later faults are only consequences of the first.
        let _ = self.0.fault.set(fault);
    }

    pub(crate) fn fault(&self) -> Option<UploadFault> {
        self.0.fault.get().copied()
    }
}
