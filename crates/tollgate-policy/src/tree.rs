//! A YAML document as a tree in which everything knows its place.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use crate::report::Report;
use crate::span::Span;

/// The most nodes a document may have, each use of an alias counted in full.
pub(crate) const MAX_NODES: usize = 50_000;

/// The deepest that nodes may be nested; a policy needs seven levels, and two more for each level of
/// a tree of descriptors.
pub(crate) const MAX_DEPTH: usize = 32;

/// A node of the document.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) shape: Shape,
    pub(crate) at: Span,
    /// How many nodes it is made of, itself included.
    size: usize,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Nothing, `~` or `null`.
    Null,
    /// A word or number without quotes.
    Plain(Rc<str>),
    /// A text in quotes or in a block.
    Quoted(Rc<str>),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys with their values, as often as written.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a scalar, whether or not it stands in quotes.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Plain(text) | Shape::Quoted(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads the one document of `text`; `None` if it is none, which is reported.
pub(crate) fn document(text: &str, report: &mut Report<'_>) -> Option<Node> {
    let mut options = granit_parser::options! { disallow_directives: true };
    options.set_emit_comments(false);
    let mut grower = Grower::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let grown = match event {
            Ok((event, span)) => grower.grow(event, span, report),
            Err(error) => {
                scan_mistake(&error, report);
                None
            }
        };
        grown?;
    }
    if grower.root.is_none() {
        let start = Span { line: 1, column: 1, width: 0 };
        report.mistake(start, "the file is empty", "a policy has `limits` and `rules`");
    }
    grower.root
}

fn scan_mistake(error: &ScanError, report: &mut Report<'_>) {
    let info = error.info();
    let message = info.lines().next().unwrap_or("this is not YAML");
    report.plain_mistake(Span::point(*error.marker()), format_args!("not YAML: {message}"));
}

/// A collection that is not closed yet.
struct Open {
    start: Marker,
    anchor: usize,
    children: Vec<Node>,
    kind: Kind,
}

enum Kind {
    Sequence,
    Mapping,
}

#[derive(Default)]
struct Grower {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

impl Grower {
    /// Takes in one event; `None` if the document ends here, which is reported.
    fn grow(
        &mut self,
        event: Event<'_>,
        span: granit_parser::Span,
        report: &mut Report<'_>,
    ) -> Option<()> {
        let at = Span::new(span.start, span.end);
        match event {
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, _, Some(tag))
            | Event::MappingStart(_, _, Some(tag)) => {
                let tag = tag.original();
                report.mistake(
                    at,
                    format_args!("a tag, {tag:?}"),
                    "a policy has no tags: leave it out",
                );
                None
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                report.plain_mistake(at, "a second document: a policy file holds one");
                None
            }
            Event::Scalar(text, style, anchor, None) => {
                self.add(Node { shape: scalar(&text, style), at, size: 1 }, anchor, report)
            }
            Event::SequenceStart(_, anchor, None) => {
                self.open(span.start, anchor, Kind::Sequence, report)
            }
            Event::MappingStart(_, anchor, None) => {
                self.open(span.start, anchor, Kind::Mapping, report)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end, report),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    report.plain_mistake(at, "an alias inside of what it stands for");
                    return None;
                };
                let node = Node { at, ..node.clone() };
                self.add(node, 0, report)
            }
            _ => Some(()),
        }
    }

    fn open(
        &mut self,
        start: Marker,
        anchor: usize,
        kind: Kind,
        report: &mut Report<'_>,
    ) -> Option<()> {
        if self.open.len() == MAX_DEPTH {
            let message = format_args!("nested more than {MAX_DEPTH} levels deep");
            report.plain_mistake(Span::point(start), message);
            return None;
        }
        self.open.push(Open { start, anchor, children: Vec::new(), kind });
        Some(())
    }

    fn close(&mut self, end: Marker, report: &mut Report<'_>) -> Option<()> {
        let Open { start, anchor, children, kind } = self.open.pop()?;
        let size = 1 + children.iter().map(|child| child.size).sum::<usize>();
        // What spans several lines is best known by how it begins.
        let at = match children.first() {
            Some(first) if start.line() != end.line() => {
                Span { width: first.at.width, ..Span::point(start) }
            }
            _ => Span::new(start, end),
        };
        let shape = match kind {
            Kind::Sequence => Shape::Sequence(children),
            Kind::Mapping => Shape::Mapping(pairs(children)),
        };
        // Its children were counted as they came.
        self.nodes -= size - 1;
        self.add(Node { shape, at, size }, anchor, report)
    }

    /// Adds a node that is whole to the collection around it.
    fn add(&mut self, node: Node, anchor: usize, report: &mut Report<'_>) -> Option<()> {
        self.nodes += node.size;
        if self.nodes > MAX_NODES {
            let message = format_args!("more than {MAX_NODES} values, aliases counted in full");
            report.plain_mistake(node.at, message);
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => self.root = Some(node),
        }
        Some(())
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Shape {
    match (style, text) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Shape::Null,
        (ScalarStyle::Plain, text) => Shape::Plain(text.into()),
        (_, text) => Shape::Quoted(text.into()),
    }
}

fn pairs(children: Vec<Node>) -> Vec<(Node, Node)> {
    let mut children = children.into_iter();
    std::iter::from_fn(|| Some((children.next()?, children.next()?))).collect()
}
