//! Notifies the service manager (systemd), if one started this process and set `NOTIFY_SOCKET`.

use sd_notify::NotifyState;

/// Reports that all listeners are open.
pub(crate) fn ready() {
    // Without a service manager there is nothing to notify.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// Reports that no listener accepts connections any more.
pub(crate) fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
