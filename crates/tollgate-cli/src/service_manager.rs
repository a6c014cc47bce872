//! What the service manager is told, where one started this process and wants to know.

use sd_notify::NotifyState;

/// Every listener is open.
pub(crate) fn ready() {
    // Without a service manager there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// No listener lets anybody in any more.
pub(crate) fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
