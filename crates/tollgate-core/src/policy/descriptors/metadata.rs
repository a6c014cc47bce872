//! What a node hands on to the caller, as it is written.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A value as JSON knows them: Envoy gets it as dynamic metadata. No decision depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Metadata {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(Box<str>),
    /// Values in their order.
    List(Vec<Self>),
    /// Names and their values, each name once.
    Map(Vec<(Box<str>, Self)>),
}
