//! Keys: the values that a [`RateLimiter`](crate::RateLimiter) counts separately.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

/// A value that a [`RateLimiter`](crate::RateLimiter) can count: text, bytes, integers, addresses,
/// and pairs of them.
///
/// Keys are compared by their bytes. Integers and addresses are written as text, so `42` and `"42"`
/// are the same key. Two different pairs are always different keys, whatever their elements
/// contain.
///
/// ```
/// use tollgate::{Key, Quota, RateLimiter};
///
/// struct Tenant(String);
///
/// impl Key for Tenant {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         read(self.0.as_bytes())
///     }
/// }
///
/// let limiter = RateLimiter::per_key(Quota::per_hour(1));
/// assert!(limiter.try_check(&Tenant("acme".to_owned())).is_admitted());
/// assert!(!limiter.try_check("acme").is_admitted());
/// assert!(limiter.try_check(&("acme", 7)).is_admitted());
/// ```
pub trait Key {
    /// Calls `read` with the bytes of the key, and returns the result of `read`.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;
}

impl Key for [u8] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Key for str {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

macro_rules! deref_keys {
    ($($type:ty: <$($param:ident)?>),* $(,)?) => {
        $(impl<$($param: Key + ?Sized)?> Key for $type {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(read)
            }
        })*
    };
}

deref_keys!(&K: <K>, Box<K>: <K>, Arc<K>: <K>, Rc<K>: <K>, String: <>, Vec<u8>: <>, Cow<'_, str>: <>);

macro_rules! integer_keys {
    ($($type:ty),*) => {
        $(impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                read(itoa::Buffer::new().format(*self).as_bytes())
            }
        })*
    };
}

integer_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

/// The text of an address, at most 45 bytes, which needs no allocation.
struct Text(SmallVec<[u8; 64]>);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

macro_rules! address_keys {
    ($($type:ty),*) => {
        $(impl Key for $type {
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let mut text = Text(SmallVec::new());
                // Writing to a buffer never fails.
                let _ = write!(text, "{self}");
                read(&text.0)
            }
        })*
    };
}

address_keys!(IpAddr, Ipv4Addr, Ipv6Addr);

/// Encodes a pair as each element after its length, for example `5:alice2:42`.
impl<A: Key, B: Key> Key for (A, B) {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let mut pair = SmallVec::<[u8; 128]>::new();
        let mut push = |part: &[u8]| {
            pair.extend_from_slice(itoa::Buffer::new().format(part.len()).as_bytes());
            pair.push(b':');
            pair.extend_from_slice(part);
        };
        self.0.with_bytes(&mut push);
        self.1.with_bytes(&mut push);
        read(&pair)
    }
}
