//! The entry point of the fuzz target `receipt`, compiled only with `--cfg fuzzing`.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate_core::{Policy, Timestamp};

use crate::hash_key::HashKey;
use crate::receipt::Receipt;

static KEY: LazyLock<HashKey> = LazyLock::new(|| HashKey::from_secret(b"a secret of 16 bytes"));

/// The format versions of receipts: 3 for the receipt of charges, 4 for the receipt of a
/// reservation.
const VERSIONS: [u8; 2] = [3, 4];

/// Tests the functions that read receipts: with `data` as the text of a receipt, and with a
/// correctly encrypted receipt with the content `data`.
///
/// # Panics
/// Panics if the functions accept a text that was not encrypted with the key, accept a changed
/// text, or read different values after a receipt was written again.
pub fn receipt(data: &[u8], policy: &Policy) {
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(Receipt::open(text, &KEY, policy).is_err(), "a receipt without the key");
    }
    let Some((&[version, changed], content)) = data.split_first_chunk::<2>() else { return };
    let mut bytes = vec![VERSIONS[usize::from(version & 1)]];
    bytes.extend(plain(content, policy));
    KEY.seal(&mut bytes, 1);
    let Ok(read) = Receipt::open(&URL_SAFE_NO_PAD.encode(&bytes), &KEY, policy) else { return };
    let text = read.receipt.seal(&KEY, Timestamp::from_millis(1_700_000_000_000));
    let again = Receipt::open(&text, &KEY, policy).expect("a text that this node wrote");
    let what = |receipt: &Receipt| format!("{:?} {:?}", receipt.id(), receipt.refunds());
    assert_eq!(what(&read.receipt), what(&again.receipt));
    let place = usize::from(changed) % bytes.len();
    bytes[place] ^= 1 << (version >> 5);
    let changed = Receipt::open(&URL_SAFE_NO_PAD.encode(&bytes), &KEY, policy);
    assert!(changed.is_err(), "a changed receipt");
}

/// Converts the fuzzer's `content` to the content of a receipt. The first 24 bytes stay the same.
/// After these bytes, each entry of `content` begins with its length and the index of a limit. In
/// the returned content, the digest of this limit replaces these two bytes.
fn plain(content: &[u8], policy: &Policy) -> Vec<u8> {
    let (head, mut rest) = content.split_at(content.len().min(24));
    let mut plain = head.to_vec();
    let limits = policy.limits();
    while let Some((&[length, limit], after)) = rest.split_first_chunk::<2>() {
        let (entry, after) = after.split_at(after.len().min(length.into()));
        let limit = &limits[usize::from(limit) % limits.len()].limit;
        plain.extend(limit.state_digest().to_be_bytes());
        plain.extend(entry);
        rest = after;
    }
    plain
}
