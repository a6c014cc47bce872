//! The key `networks`: lists of networks.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, List, Spanned, Text, keys};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// A list of networks: the networks themselves, or the file that contains them.
#[derive(Debug)]
pub(crate) enum Networks {
    Listed(Vec<Spanned<Text>>),
    File(NetworkFile),
}

keys! {
    /// A list of networks in a file of its own.
    struct NetworkFile as "a list of networks", requires "file" {
        /// The path of the file, relative to the directory of the policy file. The file has one
        /// network or address on each line. Text after `#` or `;` is ignored. All
        /// files together have at most 1,000,000 networks.
        file: Text,
    }
}

impl Decode for Networks {
    const EXPECTED: &'static str =
        "networks such as [10.0.0.0/8, 2001:db8::/32], or { file: PATH }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Sequence(_) => List::decode(node, report).map(|List(all)| Self::Listed(all)),
            NodeKind::Mapping(_) => NetworkFile::decode(node, report).map(Self::File),
            _ => Spanned::decode(node, report).map(|one| Self::Listed(vec![one])),
        }
    }
}

impl JsonSchema for Networks {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Networks".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let file = generator.subschema_for::<NetworkFile>();
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
            file,
        ]})
    }
}
