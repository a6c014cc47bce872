use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::framing::Violation;

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
    /// Its framing is unsound.
    Malformed(Violation),
    /// The client left, or sent less than it announced.
    Broken,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// Milliseconds from `began`.
    last_progress: AtomicU64,
    fault: OnceLock<UploadFault>,
    ended: AtomicBool,
}

impl Upload {
    pub(crate) fn begin() -> Self {
        Self(Arc::new(Shared {
            began: Instant::now(),
            last_progress: AtomicU64::new(0),
            fault: OnceLock::new(),
            ended: AtomicBool::new(false),
        }))
    }

    /// Notes that a piece of the body went on.
    pub(crate) fn progress(&self) {
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

    /// Notes why the body failed; the first reason stays.
    pub(crate) fn fail(&self, fault: UploadFault) {
        // Later faults are only consequences of the first.
        let _ = self.0.fault.set(fault);
    }

    pub(crate) fn fault(&self) -> Option<UploadFault> {
        self.0.fault.get().copied()
    }
}
