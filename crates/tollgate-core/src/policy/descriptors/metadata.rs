//! Metadata of a node in a descriptor tree. It is passed to the caller unchanged.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A JSON value. Envoy receives the value as dynamic metadata, and no decision depends on it.
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
