//! Serialization to JSON text.
//!
//! `serde_json` checks each byte for escaping, also in names that are constants of the program.
//! These checks took a seventh of all instructions of a response. This serializer checks sixteen
//! bytes at once, and does not check names.

use serde::Serialize;
use serde::ser::{Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use serde_json::{Error, Result};

/// A serializer that appends JSON text to a buffer.
pub(super) struct Text<'o>(pub(super) &'o mut Vec<u8>);

/// An array or an object that is being written.
pub(super) struct Open<'o> {
    out: &'o mut Vec<u8>,
    /// The byte before the next member: the opening bracket first, then commas.
    before: u8,
    end: u8,
}

macro_rules! whole_numbers {
    ($($method:ident $number:ty,)*) => {
        $(fn $method(self, number: $number) -> Result<()> {
            self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            Ok(())
        })*
    };
}

impl<'o> Serializer for Text<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'o>;
    type SerializeMap = Open<'o>;
    type SerializeStruct = Open<'o>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    whole_numbers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, number: f32) -> Result<()> {
        serde_json::to_writer(self.0, &number)
    }

    fn serialize_f64(self, number: f64) -> Result<()> {
        serde_json::to_writer(self.0, &number)
    }

    fn serialize_char(self, character: char) -> Result<()> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<()> {
        push_text(self.0, text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &str, _: u32, variant: &'static str) -> Result<()> {
        // Variant names are ASCII letters and need no escaping.
        self.0.extend_from_slice(b"\"");
        self.0.extend_from_slice(variant.as_bytes());
        self.0.push(b'"');
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &str, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let mut object = self.serialize_map(Some(1))?;
        object.serialize_entry(variant, value)?;
        SerializeMap::end(object)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'o>> {
        Ok(Open { out: self.0, before: b'[', end: b']' })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'o>> {
        Ok(Open { out: self.0, before: b'{', end: b'}' })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'o>> {
        self.serialize_map(None)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        Err(unknown())
    }

    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Self::SerializeTupleStruct> {
        Err(unknown())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        Err(unknown())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        Err(unknown())
    }
}

fn unknown() -> Error {
    Error::custom("no document here holds tuples, or variants with members")
}

impl Open<'_> {
    fn next(&mut self) {
        self.out.push(self.before);
        self.before = b',';
    }

    fn close(self) {
        if self.before != b',' {
            self.out.push(self.before);
        }
        self.out.push(self.end);
    }
}

impl SerializeSeq for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, element: &T) -> Result<()> {
        self.next();
        element.serialize(Text(self.out))
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<()> {
        self.next();
        let begin = self.out.len();
        name.serialize(Text(self.out))?;
        if self.out.get(begin) != Some(&b'"') {
            return Err(Error::custom("the name of a member is text"));
        }
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(Text(self.out))
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        // Member names are ASCII letters and need no escaping.
        self.out.extend_from_slice(&[self.before, b'"']);
        self.before = b',';
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Text(self.out))
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    while let Some(at) = first_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            b'\n' => out.extend_from_slice(br"\n"),
            control => {
                let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(b"\\u00");
                out.extend([digit(control >> 4), digit(control & 0xf)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The number of bytes that are checked at once, in one SIMD register.
const TOGETHER: usize = 16;

fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (pieces, rest) = bytes.as_chunks::<TOGETHER>();
    let plain = pieces.iter().take_while(|piece| is_plain(piece)).count();
    if plain == pieces.len() {
        // A text shorter than one piece, as most are, is padded and checked as one piece.
        let mut piece = [b' '; TOGETHER];
        piece[..rest.len()].copy_from_slice(rest);
        if is_plain(&piece) {
            return None;
        }
    }
    let plain = plain * TOGETHER;
    bytes[plain..].iter().position(|byte| marked(*byte) != 0).map(|at| plain + at)
}

/// Returns whether no byte has to be escaped. The results are combined without a branch, because
/// only then does the compiler vectorize the loop.
fn is_plain(piece: &[u8; TOGETHER]) -> bool {
    piece.iter().fold(0, |any, byte| any | marked(*byte)) == 0
}

/// Returns 1 if the byte has to be escaped, else 0.
fn marked(byte: u8) -> u8 {
    u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn written(document: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        document.serialize(Text(&mut out)).unwrap();
        out
    }

    #[test]
    fn every_byte_at_every_place_of_a_word_is_read_back() {
        for byte in 0..=0x7f_u8 {
            for place in 0..=2 * TOGETHER {
                let text = "a".repeat(place) + &char::from(byte).to_string() + "é\u{2028}";
                let document = json!({ &*text: [text, {}, [], null, true, -1, 1.5] });
                let read: Value = serde_json::from_slice(&written(&document)).unwrap();
                assert_eq!(read, document);
            }
        }
    }

    #[test]
    fn names_are_text() {
        let numbers = std::collections::BTreeMap::from([(1, 2)]);
        assert!(numbers.serialize(Text(&mut Vec::new())).is_err());
    }

    proptest! {
        #[test]
        fn whatever_was_written_is_read_back(texts: Vec<String>, number: u64) {
            let document = json!({ "texts": texts, "number": number });
            let read: Value = serde_json::from_slice(&written(&document)).unwrap();
            prop_assert_eq!(read, document);
        }
    }
}
