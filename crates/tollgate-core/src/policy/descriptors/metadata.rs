//! Metadata of a node in a descriptor tree, which callers receive unchanged.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A JSON value that Envoy receives as dynamic metadata. No decision depends on the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Metadata {
    /// The null value.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(Box<str>),
    /// An array.
    List(Vec<Self>),
    /// An object: pairs of a name and a value. No name occurs twice.
    Map(Vec<(Box<str>, Self)>),
}
