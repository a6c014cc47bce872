//! A YAML document as a tree in which every node has its position.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use crate::report::Report;
use crate::span::Span;

/// The largest number of nodes in a YAML document. An alias counts as all nodes to which it refers,
/// each time it is used.
pub(crate) const MAX_NODES: usize = 50_000;

/// The largest nesting depth of nodes. A policy needs seven levels, and two more levels for each
/// level of a descriptor tree.
pub(crate) const MAX_DEPTH: usize = 32;

/// A node of the document: a value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) at: Span,
    /// The number of nodes in the subtree of this node, including this node.
    pub(crate) size: usize,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    /// A null value: an empty value, `~` or `null`.
    Null,
    /// A word or number without quotes.
    Plain(Rc<str>),
    /// A text in quotes or in a block scalar.
    Quoted(Rc<str>),
    /// A list.
    Sequence(Vec<Node>),
    /// Pairs of a key and a value. A key can occur more than once.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Returns the text of a scalar, with or without quotes. Returns `None` for a null value, a
    /// list and a mapping.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Plain(text) | NodeKind::Quoted(text) => Some(text),
            _ => None,
        }
    }
}

/// Parses `text`, which must be a single YAML document. Returns `None` after reporting a mistake.
pub(crate) fn document(text: &str, report: &mut Report<'_>) -> Option<Node> {
    document_of(0, text, report)
}

/// Parses the text of the file with the number `file`, which must be a single YAML document.
/// Returns `None` after reporting a mistake.
pub(crate) fn document_of(file: u16, text: &str, report: &mut Report<'_>) -> Option<Node> {
    let mut options = granit_parser::options! { disallow_directives: true };
    options.set_emit_comments(false);
    let mut grower = TreeBuilder { file, ..TreeBuilder::default() };
    for event in Parser::new_from_str_with_options(text, options) {
        let grown = match event {
            Ok((event, span)) => grower.push_event(event, span, report),
            Err(error) => {
                scan_error(file, &error, report);
                None
            }
        };
        grown?;
    }
    if grower.root.is_none() {
        let start = Span { file, ..Span::START };
        report.error(start, "the file is empty", "a policy has `limits` and `rules`");
    }
    grower.root
}

fn scan_error(file: u16, error: &ScanError, report: &mut Report<'_>) {
    let info = error.info();
    let message = info.lines().next().unwrap_or("this is not YAML");
    let at = Span::point(file, *error.marker());
    match hint(message) {
        Some(hint) => report.error(at, format_args!("not YAML: {message}"), hint),
        None => report.plain_error(at, format_args!("not YAML: {message}")),
    }
}

/// Returns a hint for the error message `message` of the YAML parser, if it is one of the most
/// common ones.
fn hint(message: &str) -> Option<&'static str> {
    let hints = [
        ("tabs disallowed", "indent with spaces"),
        (
            "did not find expected key",
            "align the keys of a mapping: each starts in the same column",
        ),
        (
            "did not find expected ',' or '}'",
            "close the `{` before this line, or separate its keys with `,`",
        ),
        (
            "did not find expected ',' or ']'",
            "close the `[` before this line, or separate its elements with `,`",
        ),
    ];
    hints.iter().find(|(part, _)| message.contains(part)).map(|(_, hint)| *hint)
}

/// A sequence or a mapping that the parser has not read to its end.
struct OpenCollection {
    start: Marker,
    anchor: usize,
    children: Vec<Node>,
    /// The height of the tallest child: the number of lists and mappings around its deepest scalar.
    child_height: usize,
    kind: CollectionKind,
}

enum CollectionKind {
    Sequence,
    Mapping,
}

#[derive(Default)]
struct TreeBuilder {
    /// The number of the file that is parsed, for the positions of nodes.
    file: u16,
    open: Vec<OpenCollection>,
    /// The targets of aliases, each with its height.
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    nodes: usize,
}

impl TreeBuilder {
    /// Adds one event of the YAML parser, such as the start of a list, to the tree. Returns `None`
    /// after reporting a mistake that ends the parsing.
    fn push_event(
        &mut self,
        event: Event<'_>,
        span: granit_parser::Span,
        report: &mut Report<'_>,
    ) -> Option<()> {
        let at = Span::new(self.file, span.start, span.end);
        match event {
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, _, Some(tag))
            | Event::MappingStart(_, _, Some(tag)) => {
                let tag = tag.original();
                report.error(at, format_args!("a tag, {tag:?}"), "a policy has no tags: remove it");
                None
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                report.plain_error(at, "a second document: a policy file has exactly one");
                None
            }
            Event::Scalar(text, style, anchor, None) => {
                self.add(Node { kind: scalar(&text, style), at, size: 1 }, 0, anchor, report)
            }
            Event::SequenceStart(_, anchor, None) => {
                self.open(span.start, anchor, CollectionKind::Sequence, report)
            }
            Event::MappingStart(_, anchor, None) => {
                self.open(span.start, anchor, CollectionKind::Mapping, report)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end, report),
            Event::Alias(anchor) => {
                let Some((node, height)) = self.anchors.get(&anchor) else {
                    report.plain_error(at, "an alias inside the node that it refers to");
                    return None;
                };
                let (node, height) = (Node { at, ..node.clone() }, *height);
                if self.open.len() + height > MAX_DEPTH {
                    let message = "levels deep, with this alias expanded";
                    report.plain_error(at, format_args!("nested more than {MAX_DEPTH} {message}"));
                    return None;
                }
                self.add(node, height, 0, report)
            }
            _ => Some(()),
        }
    }

    fn open(
        &mut self,
        start: Marker,
        anchor: usize,
        kind: CollectionKind,
        report: &mut Report<'_>,
    ) -> Option<()> {
        if self.open.len() == MAX_DEPTH {
            let message = format_args!("nested more than {MAX_DEPTH} levels deep");
            report.plain_error(Span::point(self.file, start), message);
            return None;
        }
        let (children, child_height) = (Vec::new(), 0);
        self.open.push(OpenCollection { start, anchor, children, child_height, kind });
        Some(())
    }

    fn close(&mut self, end: Marker, report: &mut Report<'_>) -> Option<()> {
        let OpenCollection { start, anchor, children, child_height, kind } = self.open.pop()?;
        let size = 1 + children.iter().map(|child| child.size).sum::<usize>();
        // If a node has several lines, a message about the node marks the first line.
        let at = match children.first() {
            Some(first) if start.line() != end.line() => {
                Span { width: first.at.width, ..Span::point(self.file, start) }
            }
            _ => Span::new(self.file, start, end),
        };
        let kind = match kind {
            CollectionKind::Sequence => NodeKind::Sequence(children),
            CollectionKind::Mapping => NodeKind::Mapping(pairs(children)),
        };
        // The children of the node were already counted when they were added.
        self.nodes -= size - 1;
        self.add(Node { kind, at, size }, child_height + 1, anchor, report)
    }

    /// Adds a complete node with the height `height` to the list or mapping that contains it. If
    /// `anchor` is not 0, also keeps the node as the target of the aliases with the number
    /// `anchor`. Returns `None` after reporting that the document has too many nodes.
    fn add(
        &mut self,
        node: Node,
        height: usize,
        anchor: usize,
        report: &mut Report<'_>,
    ) -> Option<()> {
        self.nodes += node.size;
        if self.nodes > MAX_NODES {
            let message = format_args!("more than {MAX_NODES} values, with each alias expanded");
            report.plain_error(node.at, message);
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), height));
        }
        match self.open.last_mut() {
            Some(parent) => {
                parent.child_height = parent.child_height.max(height);
                parent.children.push(node);
            }
            None => self.root = Some(node),
        }
        Some(())
    }
}

fn scalar(text: &str, style: ScalarStyle) -> NodeKind {
    match (style, text) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => NodeKind::Null,
        (ScalarStyle::Plain, text) => NodeKind::Plain(text.into()),
        (_, text) => NodeKind::Quoted(text.into()),
    }
}

fn pairs(children: Vec<Node>) -> Vec<(Node, Node)> {
    let mut children = children.into_iter();
    std::iter::from_fn(|| Some((children.next()?, children.next()?))).collect()
}
