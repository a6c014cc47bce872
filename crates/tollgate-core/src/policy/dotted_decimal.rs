//! The text of an IPv4 address, without an allocation.

use core::net::Ipv4Addr;

/// The length in bytes of the longest IPv4 address in dotted decimal form, `255.255.255.255`, with
/// a dot after it.
const DOTTED_DECIMAL: usize = 16;

/// Returns the text of `address` and its length. The bytes after the text have no meaning.
pub(super) fn dotted_decimal(address: Ipv4Addr) -> ([u8; DOTTED_DECIMAL], usize) {
    let (mut text, mut length) = ([0; DOTTED_DECIMAL], 0);
    for octet in address.octets() {
        let digits = OCTETS[usize::from(octet)];
        text[length..length + digits.len()].copy_from_slice(&digits);
        length += usize::from(digits[3]);
        text[length] = b'.';
        length += 1;
    }
    (text, length - 1)
}

/// For each value of an octet, its decimal digits in ASCII from the left. The last byte is the
/// number of digits.
const OCTETS: [[u8; 4]; 256] = {
    let (mut octets, mut octet) = ([[0; 4]; 256], 0);
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let count = if octet >= 100 {
            3
        } else if octet >= 10 {
            2
        } else {
            1
        };
        let mut index = 0;
        while index < count {
            octets[octet][index] = b'0' + digits[3 - count + index] as u8;
            index += 1;
        }
        octets[octet][3] = count as u8;
        octet += 1;
    }
    octets
};

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_address_is_written_as_the_standard_library_writes_it() {
        for octet in 0..=u8::MAX {
            let address = Ipv4Addr::new(octet, octet / 2, octet.wrapping_mul(7), 255 - octet);
            let (text, length) = dotted_decimal(address);
            assert_eq!(&text[..length], address.to_string().as_bytes());
        }
    }
}
