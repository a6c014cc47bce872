//! Compiles expressions in a subset of the Common Expression Language (CEL).
//!
//! The crate `cel` only parses the expressions. This module compiles the parsed form to a typed
//! form. A mistake is therefore found when the policy is loaded, and the evaluation cannot fail and
//! has no loops. The evaluation of a small condition takes 33,000 instructions in `cel`, and some
//! hundreds in the compiled form.

use std::thread;

use cel::Program;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators};
use tollgate_core::policy::{Attribute, Condition, Text};

use super::field_name::is_token_text;
use super::names::NameTable;
use crate::decode::{self, Spanned, quoted};
use crate::raw::Subject;
use crate::report::Report;

/// The maximum length of an expression in bytes. It bounds the time of an evaluation.
pub(crate) const MAX_EXPRESSION_BYTES: usize = 2_048;

/// The size in bytes of the parser's stack. The parser uses up to 170 KB for each of at most 96
/// nested levels.
const STACK: usize = 32 << 20;

const ATTRIBUTES: &str = "expected request.method, request.path, request.query, request.host, \
                          request.headers['name'], request.params['name'], \
                          request.cookies['name'], source.address or subject.NAME";

const CONDITIONS: &str = "expected ==, !=, in, &&, ||, !, has(), startsWith(), endsWith(), \
                          contains(), or size() with a number";

const TEXTS: &str = "expected an attribute such as request.path, a text in quotes, +, or ? with :";

/// A mistake in an expression: the message, and a hint that shows the correct form.
type Mistake = (String, String);

/// Compiles the condition `given`, which can refer to `subjects`. Returns `None` after reporting a
/// mistake.
pub(super) fn condition(
    given: &Spanned<decode::Text>,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Condition> {
    compiled(given, report, |source, tree, info| {
        Compiler { source, info, subjects: Some(subjects) }.condition(tree)
    })
}

/// Compiles the text expression `given`, which cannot refer to subjects. Returns `None` after
/// reporting a mistake.
pub(super) fn text(given: &Spanned<decode::Text>, report: &mut Report<'_>) -> Option<Text> {
    compiled(given, report, |source, tree, info| {
        Compiler { source, info, subjects: None }.text(tree)
    })
}

/// Parses the expression `given` and compiles it with `compile`. Both run on a separate thread,
/// because the parser is recursive and needs a large stack. Returns `None` after reporting a
/// mistake.
fn compiled<T: Send>(
    given: &Spanned<decode::Text>,
    report: &mut Report<'_>,
    compile: impl FnOnce(&str, &IdedExpr, &SourceInfo) -> Result<T, Mistake> + Send,
) -> Option<T> {
    let source = &*given.value.0;
    if source.len() > MAX_EXPRESSION_BYTES {
        let message = format_args!("an expression of {} bytes", source.len());
        let hint = format_args!("expected at most {MAX_EXPRESSION_BYTES}: split the rule");
        report.error(given.at, message, hint);
        return None;
    }
    let task = || match Program::compile(source) {
        Ok(program) => compile(source, program.expression(), program.source_info()),
        Err(errors) => Err(syntax(source, errors.errors.first())),
    };
    let result = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, task);
        thread.map(thread::ScopedJoinHandle::join)
    });
    let (message, hint) = match result {
        Ok(Ok(Ok(compiled))) => return Some(compiled),
        Ok(Ok(Err(mistake))) => mistake,
        Ok(Err(_panic)) => ("this is not an expression".to_owned(), CONDITIONS.to_owned()),
        Err(error) => (format!("cannot start a thread: {error}"), "try again".to_owned()),
    };
    report.error(given.at, message, hint);
    None
}

/// Converts a syntax error of the parser to a mistake. `source` is the text of the expression.
fn syntax(source: &str, error: Option<&cel::ParseError>) -> Mistake {
    let hint = "texts are in quotes: request.method == 'POST'".to_owned();
    let Some(error) = error else { return ("this is not an expression".to_owned(), hint) };
    let (line, column) = error.pos;
    let location = match source.contains('\n') {
        true => format!("line {line}, character {column}"),
        false => format!("character {column}"),
    };
    let problem = error.msg.lines().next().unwrap_or_default();
    let problem = match () {
        () if problem.contains("Recursion limit") => "more than 96 levels",
        () if problem.contains("Incomplete") => "a part is missing",
        // If the message contains the parser's internal types, only the text before them is kept.
        () if problem.contains(" { ") => problem.split(": ").next().unwrap_or_default(),
        () => problem.trim_start_matches("Syntax error: "),
    };
    // The list of the tokens that the parser expected is left out, because it is too long to help.
    let problem =
        problem.split(" expecting ").next().unwrap_or_default().replace("'<EOF>'", "the end");
    (format!("this is not an expression, at {location}: {problem}"), hint)
}

struct Compiler<'e, 's, 'f> {
    source: &'e str,
    info: &'e SourceInfo,
    /// The subjects to which the expression can refer, or `None` if it cannot refer to any.
    subjects: Option<&'s mut NameTable<'f, Subject>>,
}

impl Compiler<'_, '_, '_> {
    fn condition(&mut self, tree: &IdedExpr) -> Result<Condition, Mistake> {
        match &tree.expr {
            Expr::Literal(LiteralValue::Boolean(value)) => Ok(Condition::Constant(*value.inner())),
            Expr::Select(select) if select.test => {
                self.attribute_of(select, tree).map(Condition::Has)
            }
            Expr::Call(call) => self.condition_of_call(call, tree),
            Expr::Comprehension(_) => Err(self.unsupported(tree, CONDITIONS)),
            _ => {
                let hint = "compare it: request.method == 'POST', or has(request.headers.name)";
                Err((format!("{} is not a condition", self.part(tree)), hint.to_owned()))
            }
        }
    }

    fn condition_of_call(
        &mut self,
        call: &CallExpr,
        tree: &IdedExpr,
    ) -> Result<Condition, Mistake> {
        match (&*call.func_name, call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_AND, None, all) => all
                .iter()
                .map(|one| self.condition(one))
                .collect::<Result<_, _>>()
                .map(Condition::All),
            (operators::LOGICAL_OR, None, all) => all
                .iter()
                .map(|one| self.condition(one))
                .collect::<Result<_, _>>()
                .map(Condition::Any),
            (operators::LOGICAL_NOT, None, [one]) => {
                Ok(Condition::Not(Box::new(self.condition(one)?)))
            }
            (operators::EQUALS, None, [one, other]) => self.equal(one, other),
            (operators::NOT_EQUALS, None, [one, other]) => {
                Ok(Condition::Not(Box::new(self.equal(one, other)?)))
            }
            (operators::IN, None, [one, all]) => self.one_of(one, all),
            ("startsWith", Some(one), [other]) => {
                Ok(Condition::StartsWith(self.text(one)?, self.text(other)?))
            }
            ("endsWith", Some(one), [other]) => {
                Ok(Condition::EndsWith(self.text(one)?, self.text(other)?))
            }
            ("contains", Some(one), [other]) => {
                Ok(Condition::Contains(self.text(one)?, self.text(other)?))
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                None,
                [one, other],
            ) => self.length(&call.func_name, one, other, tree),
            _ => Err(self.unsupported(tree, CONDITIONS)),
        }
    }

    fn equal(&mut self, one: &IdedExpr, other: &IdedExpr) -> Result<Condition, Mistake> {
        if let (Some(measured), Some(length)) = (measured(one), number(other)) {
            let measured = self.text(measured)?;
            let longer = Condition::IsAtLeast(measured.clone(), length.saturating_add(1));
            let not_longer = Condition::Not(Box::new(longer));
            return Ok(Condition::All(vec![Condition::IsAtLeast(measured, length), not_longer]));
        }
        Ok(Condition::Equal(self.text(one)?, self.text(other)?))
    }

    /// Compiles a comparison of a length, such as `size(text) < 9`.
    fn length(
        &mut self,
        operator: &str,
        one: &IdedExpr,
        other: &IdedExpr,
        tree: &IdedExpr,
    ) -> Result<Condition, Mistake> {
        let (Some(measured), Some(length)) = (measured(one), number(other)) else {
            let hint = "compare the length of a text with a number: size(request.query) > 100";
            return Err((
                format!("{} compares something other than lengths", self.part(tree)),
                hint.to_owned(),
            ));
        };
        let measured = self.text(measured)?;
        let is_strict = matches!(operator, operators::GREATER | operators::LESS_EQUALS);
        let least = length.saturating_add(u64::from(is_strict));
        let is_long = Condition::IsAtLeast(measured, least);
        Ok(match operator {
            operators::GREATER | operators::GREATER_EQUALS => is_long,
            _ => Condition::Not(Box::new(is_long)),
        })
    }

    /// Compiles the operator `in`, as in `text in ['a', 'b']` and `'name' in request.headers`.
    fn one_of(&mut self, one: &IdedExpr, all: &IdedExpr) -> Result<Condition, Mistake> {
        if let Expr::List(list) = &all.expr {
            let texts = list.elements.iter().map(|other| self.text(other));
            let texts = texts.collect::<Result<_, _>>()?;
            return Ok(Condition::OneOf(self.text(one)?, texts));
        }
        match (literal(one), &all.expr) {
            (Some(name), Expr::Select(select)) => {
                self.named(&select.operand, &select.field, name, all).map(Condition::Has)
            }
            _ => {
                let hint =
                    "expected request.method in ['GET', 'HEAD'], or 'name' in request.headers";
                Err((format!("{} is not a list", self.part(all)), hint.to_owned()))
            }
        }
    }

    fn text(&mut self, tree: &IdedExpr) -> Result<Text, Mistake> {
        match &tree.expr {
            Expr::Literal(LiteralValue::String(text)) => Ok(Text::Literal(text.inner().into())),
            Expr::Select(select) if !select.test => self.attribute_of(select, tree).map(Text::Of),
            Expr::Call(call) => match (&*call.func_name, call.args.as_slice()) {
                (operators::INDEX, [map, name]) => match (&map.expr, literal(name)) {
                    (Expr::Select(select), Some(name)) => {
                        self.named(&select.operand, &select.field, name, tree).map(Text::Of)
                    }
                    (_, None) => {
                        let hint = "expected a name in quotes: request.headers['x-user']";
                        Err((format!("{} is not a name", self.part(name)), hint.to_owned()))
                    }
                    _ => Err(self.unknown(tree)),
                },
                (operators::ADD, all) => {
                    all.iter().map(|one| self.text(one)).collect::<Result<_, _>>().map(Text::Joined)
                }
                (operators::CONDITIONAL, [condition, one, other]) => Ok(Text::Chosen(Box::new((
                    self.condition(condition)?,
                    self.text(one)?,
                    self.text(other)?,
                )))),
                _ => Err(self.unsupported(tree, TEXTS)),
            },
            Expr::Ident(_) => Err(self.unknown(tree)),
            Expr::Literal(_) => {
                let hint = "texts are in quotes; numbers are compared with size()";
                Err((format!("{} is not a text", self.part(tree)), hint.to_owned()))
            }
            _ => Err(self.unsupported(tree, TEXTS)),
        }
    }

    /// Compiles the name of an attribute, such as `request.path`, `request.headers.name` or
    /// `subject.name`.
    fn attribute_of(&mut self, select: &SelectExpr, tree: &IdedExpr) -> Result<Attribute, Mistake> {
        match &select.operand.expr {
            Expr::Ident(root) => match (&**root, &*select.field) {
                ("request", "method") => Ok(Attribute::Method),
                ("request", "path") => Ok(Attribute::Path),
                ("request", "query") => Ok(Attribute::Query),
                ("request", "host") => Ok(Attribute::Host),
                ("source", "address") => Ok(Attribute::Address),
                ("subject", name) => self.subject(name),
                ("request", "headers" | "params" | "cookies") => {
                    let part = self.part(tree);
                    let hint = format!("expected one of them, such as {part}['name']");
                    Err((format!("{part} is not a text"), hint))
                }
                _ => Err(self.unknown(tree)),
            },
            Expr::Select(map) => self.named(&map.operand, &map.field, &select.field, tree),
            _ => Err(self.unknown(tree)),
        }
    }

    /// Returns the attribute with the name `name` in the map `map` of `root`, such as `x-plan` in
    /// the map `headers` of `request`.
    fn named(
        &self,
        root: &IdedExpr,
        map: &str,
        name: &str,
        tree: &IdedExpr,
    ) -> Result<Attribute, Mistake> {
        if !matches!(&root.expr, Expr::Ident(root) if root == "request") {
            return Err(self.unknown(tree));
        }
        let attribute = match map {
            "headers" => Attribute::Header(name.to_ascii_lowercase().into()),
            "params" => return Ok(Attribute::Parameter(name.into())),
            "cookies" => Attribute::Cookie(name.into()),
            _ => return Err(self.unknown(tree)),
        };
        if !is_token_text(name) {
            let message = format!("{} is not the name of a header or a cookie", quoted(name));
            return Err((message, "expected letters, digits and `-`".to_owned()));
        }
        Ok(attribute)
    }

    fn subject(&mut self, name: &str) -> Result<Attribute, Mistake> {
        let Some(subjects) = &mut self.subjects else {
            let hint = "read the attributes of the request, or use `first_of`";
            return Err(("a subject is made from other subjects".to_owned(), hint.to_owned()));
        };
        match subjects.known(name) {
            Some(index) => Ok(Attribute::Dimension(index)),
            None => {
                let message = format!("unknown subject {}", quoted(name));
                Err((message, "expected one of `subjects`".to_owned()))
            }
        }
    }

    fn unknown(&self, tree: &IdedExpr) -> Mistake {
        (format!("unknown attribute {}", self.part(tree)), ATTRIBUTES.to_owned())
    }

    fn unsupported(&self, tree: &IdedExpr, hint: &str) -> Mistake {
        let what = match &tree.expr {
            Expr::Call(call) if !call.func_name.contains(['_', '@', '!']) => {
                format!("the function {}()", call.func_name)
            }
            Expr::Comprehension(_) => "a loop".to_owned(),
            _ => self.part(tree),
        };
        (format!("{what} is not supported here"), hint.to_owned())
    }

    /// Returns the part of the expression's text from which `tree` was parsed.
    fn part(&self, tree: &IdedExpr) -> String {
        fn names(tree: &IdedExpr) -> Option<String> {
            match &tree.expr {
                Expr::Ident(name) => Some(name.clone()),
                Expr::Select(select) => {
                    Some(format!("{}.{}", names(&select.operand)?, select.field))
                }
                Expr::Call(call) if call.func_name == operators::INDEX => {
                    let [map, name] = call.args.as_slice() else { return None };
                    Some(format!("{}['{}']", names(map)?, literal(name)?))
                }
                _ => None,
            }
        }
        let location = || {
            let (start, end) = self.info.offset_for(tree.id)?;
            self.source.get(start as usize..=end as usize)
        };
        names(tree).or_else(|| location().map(quoted)).unwrap_or_else(|| "this".to_owned())
    }
}

/// Returns the argument of `size()` if `tree` is a call of `size()`, otherwise `None`.
fn measured(tree: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &tree.expr else { return None };
    match (&*call.func_name, call.target.as_deref(), call.args.as_slice()) {
        ("size", None, [one]) | ("size", Some(one), []) => Some(one),
        _ => None,
    }
}

fn number(tree: &IdedExpr) -> Option<u64> {
    match &tree.expr {
        Expr::Literal(LiteralValue::Int(number)) => u64::try_from(*number.inner()).ok(),
        _ => None,
    }
}

fn literal(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
