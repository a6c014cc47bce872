//! A deserializer over a parsed tree, which reports the location of errors.

use std::slice;

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::fault::Fault;
use super::tree::Tree;

/// A deserializer for a part of a document. Its errors contain the location in the document.
pub(super) struct Located<'t>(pub(super) &'t Tree);

impl<'de> Deserializer<'de> for Located<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(value) => visitor.visit_bool(*value),
            Tree::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, Some(number)) => visitor.visit_f64(number),
                (None, None, None) => {
                    Err(Fault::invalid_type(Unexpected::Other("number"), &visitor))
                }
            },
            Tree::Text(text) => visitor.visit_str(text),
            Tree::List(list) => visitor.visit_seq(Elements { rest: list.iter(), index: 0 }),
            Tree::Object(object) => visitor.visit_map(Members { rest: object.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Tree::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Elements<'t> {
    rest: slice::Iter<'t, Tree>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(element) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Located(element)).map(Some).map_err(|fault| fault.inside(index))
    }
}

struct Members<'t> {
    rest: slice::Iter<'t, (String, Tree)>,
    /// The current member, with its name and its value. The deserializer has returned the name, and
    /// returns the value next. `None` if no name was returned since the last value.
    value: Option<&'t (String, Tree)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.value = self.rest.next();
        let Some((name, _)) = self.value else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((name, value)) = self.value.take() else {
            return Err(Fault::custom("a value without a name"));
        };
        seed.deserialize(Located(value)).map_err(|fault| fault.inside(name))
    }
}
