//! Subjects and hashes as text, for the names that stores give to what they keep.

use alloc::string::String;

use super::{Stored, Subject};

/// Writes `subject` readably: `user=42,address=2001:db8::/64`, `name~` without a value, `name#` and
/// hexadecimal of a hash.
///
/// In names and values nothing but letters, digits and what is `kept` stays as it is; every other
/// byte becomes `%` and two hexadecimal digits. Two different subjects never look alike, as long as
/// none of `%`, `,`, `=`, `~` and `#` is kept.
pub fn push_subject(out: &mut String, subject: &Subject, kept: &[u8]) {
    for (index, (name, value)) in subject.pairs().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_escaped(out, name.as_bytes(), kept);
        match value {
            Stored::Absent => out.push('~'),
            Stored::Clear(bytes) => {
                out.push('=');
                push_escaped(out, bytes, kept);
            }
            Stored::Hashed(bytes) => {
                out.push('#');
                bytes.iter().for_each(|byte| push_hex(out, *byte));
            }
        }
    }
}

/// Writes 128 bits as 22 characters of the base64 alphabet for names (RFC 4648, section 5),
/// unpadded.
pub fn push_base64(out: &mut String, bytes: [u8; 16]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut rest = u128::from_be_bytes(bytes);
    for _ in 0..22 {
        // From the top, six bits at a time; the last character holds two.
        out.push(char::from(ALPHABET[(rest >> 122) as usize]));
        rest <<= 6;
    }
}

fn push_escaped(out: &mut String, bytes: &[u8], kept: &[u8]) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            push_hex(out, byte);
        }
    }
}

fn push_hex(out: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        out.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
    }
}
