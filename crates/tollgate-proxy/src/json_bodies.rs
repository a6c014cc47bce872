//! Buffering of JSON request bodies for the layer.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tollgate::model::policy::Ambiguity;
use tollgate_http::AddressKey;

/// The longest body that is buffered, in bytes.
pub(crate) const MAX_READ_AHEAD: usize = 256 * 1024;

/// The largest number of bytes in all buffered bodies together. A body that would exceed this total
/// is not buffered.
pub(crate) const MAX_READ_AHEAD_TOGETHER: usize = 64 * 1024 * 1024;

/// The largest number of bytes in the buffered bodies of one client address. One address can
/// therefore not use up [`MAX_READ_AHEAD_TOGETHER`], unless it is a trusted proxy.
pub(crate) const MAX_READ_AHEAD_OF_ADDRESS: usize = 8 * 1024 * 1024;

/// Whether the proxy reads JSON request bodies before the requests pass through the layer. A body
/// that was read is a [`JsonBody`](tollgate::tower::JsonBody) in the extensions of its request. By
/// default no body is read. Clones share the setting, and a change applies to all later requests.
///
/// A body is not buffered if it is longer than 256 KiB, if it takes longer than 5 s to arrive, or
/// if the bytes that have arrived of all buffered bodies together would exceed 64 MiB, or 8 MiB for
/// one client address that is no trusted proxy. The body of a client that waits for `100 Continue`
/// is not buffered either, because the proxy does not ask for the body of a request that might be
/// refused. Every body is forwarded unchanged.
#[derive(Clone, Debug, Default)]
pub struct JsonBodyBuffering(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_enabled: AtomicBool,
    taken: Mutex<TakenBytes>,
}

/// The bytes that are reserved. Each address in the map has a reservation, so the number of
/// reservations bounds the map.
#[derive(Debug, Default)]
struct TakenBytes {
    together: usize,
    by_address: HashMap<AddressKey, usize>,
}

/// A reservation of memory for one buffered body. It grows with the bytes that arrive: a client
/// that sends nothing reserves nothing. The reservation ends when the upstream has accepted the
/// buffered bytes.
#[derive(Debug)]
pub(crate) struct ReadAheadPermit {
    shared: Arc<Shared>,
    /// The client's address. `None` if only the total of all bodies is limited.
    address: Option<AddressKey>,
    bytes: usize,
}

impl JsonBodyBuffering {
    /// Enables buffering for all later requests.
    pub fn enable(&self) {
        self.0.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Disables buffering for all later requests.
    pub fn disable(&self) {
        self.0.is_enabled.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_enabled.load(Ordering::Relaxed)
    }

    /// Creates an empty reservation for a body from `address`. `None` means that only the total of
    /// all bodies limits the reservation.
    pub(crate) fn permit(&self, address: Option<AddressKey>) -> ReadAheadPermit {
        ReadAheadPermit { shared: Arc::clone(&self.0), address, bytes: 0 }
    }
}

impl ReadAheadPermit {
    /// Enlarges the reservation to `bytes` bytes. A larger reservation stays as it is.
    ///
    /// # Errors
    /// [`Ambiguity::BodyRoom`] if the remaining memory is not enough. The reservation then stays as
    /// it is.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Ambiguity> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            self.shared.taken.lock().add(more, self.address)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Returns the number of reserved bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends the reservation.
    pub(crate) fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            self.shared.taken.lock().remove(bytes, self.address);
        }
    }
}

impl Drop for ReadAheadPermit {
    fn drop(&mut self) {
        self.release();
    }
}

impl TakenBytes {
    fn add(&mut self, bytes: usize, address: Option<AddressKey>) -> Result<(), Ambiguity> {
        let together = self.together + bytes;
        if together > MAX_READ_AHEAD_TOGETHER {
            return Err(Ambiguity::BodyRoom);
        }
        if let Some(address) = address {
            let of_address = self.by_address.get(&address).copied().unwrap_or(0) + bytes;
            if of_address > MAX_READ_AHEAD_OF_ADDRESS {
                return Err(Ambiguity::BodyRoom);
            }
            self.by_address.insert(address, of_address);
        }
        self.together = together;
        Ok(())
    }

    fn remove(&mut self, bytes: usize, address: Option<AddressKey>) {
        self.together -= bytes;
        let Some(address) = address else { return };
        if let Some(of_address) = self.by_address.get_mut(&address) {
            *of_address -= bytes;
            if *of_address == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn permit(bodies: &JsonBodyBuffering, address: &str) -> ReadAheadPermit {
        let address: IpAddr = address.parse().expect("an address");
        bodies.permit(Some(AddressKey::of(address)))
    }

    #[test]
    fn there_is_room_for_so_many_bytes_at_once() {
        let bodies = JsonBodyBuffering::default();
        let (mut whole, mut other) = (bodies.permit(None), bodies.clone().permit(None));
        assert_eq!(whole.grow(MAX_READ_AHEAD_TOGETHER - 1), Ok(()));
        assert_eq!(other.grow(2), Err(Ambiguity::BodyRoom));
        assert_eq!(other.grow(1), Ok(()));
        assert_eq!(other.grow(1), Ok(()), "the same bytes are not reserved twice");
        drop(whole);
        assert_eq!(other.grow(MAX_READ_AHEAD_TOGETHER), Ok(()));
    }

    #[test]
    fn an_address_takes_only_its_share_of_the_room() {
        let bodies = JsonBodyBuffering::default();
        let (mut one, mut same) = (permit(&bodies, "2001:db8::1"), permit(&bodies, "2001:db8::2"));
        let mut other = permit(&bodies, "192.0.2.1");
        assert_eq!(one.grow(MAX_READ_AHEAD_OF_ADDRESS), Ok(()));
        assert_eq!(same.grow(1), Err(Ambiguity::BodyRoom));
        assert_eq!(other.grow(MAX_READ_AHEAD_OF_ADDRESS), Ok(()));
        one.release();
        assert_eq!(same.grow(1), Ok(()));
        drop((one, same, other));
        let taken = bodies.0.taken.lock();
        assert_eq!((taken.together, taken.by_address.len()), (0, 0));
    }
}
