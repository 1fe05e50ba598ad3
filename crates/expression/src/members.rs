//! The members of the document that a condition refers to, and the check whether a document has them.
//!
//! A read of a member that the document lacks has no result, and must not pass for "does not hold". So every read is
//! traced to a path from `input`, and one that cannot be traced is refused, but for names of members that pass through a
//! function or a comprehension. Variables are traced in the order of the text: each is declared once, before its use, and not
//! under a name that is visible there.
//!
//! Not here: the allowed elements of a condition (`allowed`).

use std::mem;

use serde_json::Value;

use crate::error::CompileError;
use crate::source;
use crate::syntax::{self, list, name, node};

/// Functions that accept `null` as an ordinary argument.
const TAKE_NULL: &[&str] =
    &["is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name"];

/// Functions whose result may contain parts of their arguments. All others return numbers, texts or names.
const PASS_ON: &[&str] = &["array.slice", "max", "min", "object.get", "sort"];

const DERIVED: &str =
    "name the member of the document directly: a value that was made from the document has no known members";
const COMPARED: &str = "name the member of the document directly, in place of comparing its name";
const DESTRUCTURED: &str =
    "name the member of the document directly: a pattern does not say which one it reads";
const INDEX: &str = "name the member of the document directly: \
    an index is written out, or a variable that `some` declares for the items of this one list or object";

/// A statement of a condition.
#[derive(Debug)]
pub(crate) struct Statement {
    text: String,
    tree: Value,
    members: Vec<Member>,
}

/// A member that a statement refers to.
#[derive(Debug)]
struct Member {
    path: Path,
    allowed: Allowed,
}

/// The values besides those of a member that a statement is meaningful with.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    absent: bool,
    null: bool,
}

const REQUIRED: Allowed = Allowed { absent: false, null: false };

/// The steps from the document to a part of it.
type Path = Vec<Step>;

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member with this name.
    Name(String),
    /// The item with this index.
    Item(usize),
    /// Every item or member, in this iteration of the condition.
    Each(usize),
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Step::Name(name) => Some(name),
            Step::Item(_) | Step::Each(_) => None,
        }
    }
}

/// The origin of a value.
#[derive(Clone, Debug)]
enum Origin {
    /// The part of the document at this path.
    Part(Path),
    /// The name or index of the current item, in this iteration over the part at this path.
    Key(Path, usize),
    /// A value that may contain parts of the document.
    Derived,
    /// A value without parts of the document: a literal, a count, a text.
    Apart,
}

type Traced<T> = Result<T, CompileError>;

/// Returns the statements of a syntax tree.
pub(crate) fn statements(text: &str, tree: &Value) -> Traced<Vec<Statement>> {
    let all = list(&tree[0]["ast"]["rules"][0]["Spec"]["bodies"][0]["query"]["stmts"]);
    let start = |statement: &Value| {
        let start = syntax::range(&statement["span"])
            .and_then(|range| range.start.checked_sub(source::range(text).start));
        unquoted(text, start.unwrap_or_default())
    };
    let starts: Vec<usize> = all.iter().map(start).collect();
    let mut trace = Trace { text, variables: Vec::new(), iterations: 0, members: Vec::new() };
    let statement = |(at, statement): (usize, &Value)| {
        trace.statement(&statement["literal"])?;
        let end = starts.get(at + 1).copied().unwrap_or(text.len());
        let text = text.get(starts[at]..end).unwrap_or_default();
        let text = text.trim_end_matches(|end: char| end == ';' || end.is_whitespace());
        let mut tree = statement["literal"].clone();
        forget_places(&mut tree);
        Ok(Statement { text: text.to_owned(), tree, members: mem::take(&mut trace.members) })
    };
    all.iter().enumerate().map(statement).collect()
}

/// Corrects the start of a statement: the engine's position excludes the opening quote of a string.
fn unquoted(text: &str, start: usize) -> usize {
    let quoted = text.get(..start).is_some_and(|before| before.ends_with(['"', '`']));
    start - usize::from(quoted)
}

/// Removes source positions and the engine's numbering from a tree, so that trees can be compared.
fn forget_places(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(forget_places),
        Value::Object(parts) => {
            parts.retain(|name, _| !matches!(name.as_str(), "span" | "eidx" | "qidx" | "sidx"));
            if let Some(field) = parts.get_mut("field").and_then(|field| field.get_mut(0)) {
                *field = Value::Null;
            }
            parts.values_mut().for_each(forget_places);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The tracing of a condition's values to the document.
struct Trace<'t> {
    text: &'t str,
    /// The visible variables. One that `some` declared without a value has no origin until it is used as an index.
    variables: Vec<(String, Option<Origin>)>,
    iterations: usize,
    /// The members that were found since the beginning of the statement.
    members: Vec<Member>,
}

impl Trace<'_> {
    fn statement(&mut self, literal: &Value) -> Traced<()> {
        let (kind, parts) = node(literal)?;
        match kind {
            "SomeVars" => list(&parts["vars"]).iter().try_for_each(|name| self.declare(name, None)),
            "SomeIn" => {
                let collection = self.value(&parts["collection"], REQUIRED)?;
                let declared = [&parts["key"], &parts["value"]];
                if let Some(pattern) = declared.into_iter().find(|part| !part.is_null() && !is_variable(part))
                {
                    return Err(self.refused(pattern, DESTRUCTURED));
                }
                let [key, value] = declared.map(|variable| &variable["Var"]["span"]);
                self.iterate(collection, key, value)
            }
            "Every" => {
                let domain = self.value(&parts["domain"], REQUIRED)?;
                self.scope(|scope| {
                    scope.iterate(domain, &parts["key"], &parts["value"])?;
                    scope.query(&parts["query"])
                })
            }
            "NotExpr" => self.value(&parts["expr"], Allowed { absent: true, null: true }).map(drop),
            _ => self.value(&parts["expr"], REQUIRED).map(drop),
        }
    }

    fn query(&mut self, query: &Value) -> Traced<()> {
        list(&query["stmts"]).iter().try_for_each(|statement| self.statement(&statement["literal"]))
    }

    /// Traces a part of the condition whose variables are not visible outside of it.
    fn scope<T>(&mut self, part: impl FnOnce(&mut Self) -> Traced<T>) -> Traced<T> {
        let outside = self.variables.len();
        let traced = part(self);
        self.variables.truncate(outside);
        traced
    }

    /// Declares the variables of an iteration, at their places in the text. The place of an absent one is null.
    fn iterate(&mut self, collection: Origin, key: &Value, value: &Value) -> Traced<()> {
        let (each_key, each_value) = match collection {
            Origin::Part(path) => {
                let iteration = self.next_iteration();
                (Origin::Key(path.clone(), iteration), Origin::Part(extended(path, Step::Each(iteration))))
            }
            Origin::Apart => (Origin::Apart, Origin::Apart),
            Origin::Key(..) | Origin::Derived => (Origin::Derived, Origin::Derived),
        };
        self.declare(key, Some(each_key))?;
        self.declare(value, Some(each_value))
    }

    fn declare(&mut self, span: &Value, origin: Option<Origin>) -> Traced<()> {
        let name = syntax::written(self.text, span);
        if self.variables.iter().any(|(known, _)| known == name) {
            let why = format!("`{name}` already stands for something here: declare another name");
            return Err(syntax::refused(self.text, span, why));
        }
        if !matches!(name, "" | "_") {
            self.variables.push((name.to_owned(), origin));
        }
        Ok(())
    }

    /// Traces an expression, and notes the members that it refers to.
    fn value(&mut self, expression: &Value, allowed: Allowed) -> Traced<Origin> {
        let (kind, parts) = node(expression)?;
        match kind {
            "Var" | "RefDot" | "RefBrack" => {
                let origin = self.reference(expression, allowed)?;
                if let Origin::Part(path) = &origin
                    && !path.is_empty()
                {
                    self.members.push(Member { path: path.clone(), allowed });
                }
                Ok(origin)
            }
            "ArrayCompr" | "SetCompr" => self.comprehension(&parts["query"], [&parts["term"]]),
            "ObjectCompr" => self.comprehension(&parts["query"], [&parts["key"], &parts["value"]]),
            "Call" => self.call(parts, allowed),
            "AssignExpr" if parts["op"] == "ColEq" => self.assignment(parts, allowed),
            "AssignExpr" | "BoolExpr" => self.comparison(parts, allowed),
            "Membership" => self.membership(parts, allowed),
            "Array" | "Set" => self.all(list(&parts["items"]), allowed),
            "Object" => {
                self.all(list(&parts["fields"]).iter().flat_map(|field| [&field[1], &field[2]]), allowed)
            }
            "UnaryExpr" => self.all([&parts["expr"]], allowed),
            "BinExpr" | "ArithExpr" => self.all([&parts["lhs"], &parts["rhs"]], allowed),
            _ => Ok(Origin::Apart),
        }
    }

    /// Traces the parts of an expression, and returns the origin of a value that is made of them.
    fn all<'v>(&mut self, parts: impl IntoIterator<Item = &'v Value>, allowed: Allowed) -> Traced<Origin> {
        let mut made = Origin::Apart;
        for part in parts {
            if !matches!(self.value(part, allowed)?, Origin::Apart) {
                made = Origin::Derived;
            }
        }
        Ok(made)
    }

    /// Traces a comprehension, which has a result even where a member in it is absent: so under `not` too, its members
    /// may not be.
    fn comprehension<const N: usize>(&mut self, query: &Value, terms: [&Value; N]) -> Traced<Origin> {
        self.scope(|scope| {
            scope.query(query)?;
            scope.all(terms, REQUIRED)
        })
    }

    fn call(&mut self, call: &Value, allowed: Allowed) -> Traced<Origin> {
        let function = name(&call["fcn"]).unwrap_or_default();
        let null = TAKE_NULL.contains(&function.as_str());
        let arguments = self.all(list(&call["params"]), Allowed { null, ..allowed })?;
        Ok(if PASS_ON.contains(&function.as_str()) { arguments } else { Origin::Apart })
    }

    fn assignment(&mut self, parts: &Value, allowed: Allowed) -> Traced<Origin> {
        let origin = self.value(&parts["rhs"], allowed)?;
        if !is_variable(&parts["lhs"]) {
            return Err(self.refused(&parts["lhs"], DESTRUCTURED));
        }
        self.declare(&parts["lhs"]["Var"]["span"], Some(origin))?;
        Ok(Origin::Apart)
    }

    fn comparison(&mut self, parts: &Value, allowed: Allowed) -> Traced<Origin> {
        let sides = [&parts["lhs"], &parts["rhs"]];
        let allowed = Allowed { null: sides.iter().any(|side| !side["Null"].is_null()), ..allowed };
        for side in sides {
            let origin = self.value(side, allowed)?;
            if parts["op"] == "Eq" && matches!(origin, Origin::Key(..)) {
                return Err(self.refused(side, COMPARED));
            }
        }
        Ok(Origin::Apart)
    }

    fn membership(&mut self, parts: &Value, allowed: Allowed) -> Traced<Origin> {
        if !parts["key"].is_null() {
            return Err(self.refused(&parts["key"], COMPARED));
        }
        let allowed = Allowed { null: false, ..allowed };
        if let Origin::Key(..) = self.value(&parts["value"], allowed)? {
            return Err(self.refused(&parts["value"], COMPARED));
        }
        self.value(&parts["collection"], allowed)?;
        Ok(Origin::Apart)
    }

    /// Traces a variable, or a path from one or from another expression.
    fn reference(&mut self, expression: &Value, allowed: Allowed) -> Traced<Origin> {
        let (kind, parts) = node(expression)?;
        let of = match kind {
            "Var" => return self.variable(expression),
            "RefDot" | "RefBrack" => self.reference(&parts["refr"], allowed)?,
            _ => return self.value(expression, allowed),
        };
        match of {
            Origin::Part(path) if kind == "RefDot" => {
                let name = parts["field"][1].as_str().unwrap_or_default();
                Ok(Origin::Part(extended(path, Step::Name(name.to_owned()))))
            }
            Origin::Part(path) => {
                let step = self.index(&path, &parts["index"])?;
                Ok(Origin::Part(extended(path, step)))
            }
            Origin::Apart if kind == "RefDot" => Ok(Origin::Apart),
            Origin::Apart => self.index_apart(&parts["index"], allowed),
            Origin::Key(..) | Origin::Derived => Err(self.refused(expression, DERIVED)),
        }
    }

    fn variable(&self, expression: &Value) -> Traced<Origin> {
        let name = expression["Var"]["value"].as_str().unwrap_or_default();
        if name == "input" {
            return Ok(Origin::Part(Path::new()));
        }
        let known = self.variables.iter().find(|(known, _)| known == name);
        known.and_then(|(_, origin)| origin.clone()).ok_or_else(|| {
            let why = format!("`{name}` has no value yet: give it one before, with `:=` or `some {name} in`");
            self.refused(expression, why)
        })
    }

    /// Traces an index of a part of the document.
    fn index(&mut self, path: &Path, index: &Value) -> Traced<Step> {
        let (kind, parts) = node(index)?;
        let step = match (kind, &parts["value"]) {
            ("String" | "RawString", Value::String(name)) => Some(Step::Name(name.clone())),
            ("Number", Value::Number(at)) => {
                at.as_u64().and_then(|at| usize::try_from(at).ok()).map(Step::Item)
            }
            ("Var", Value::String(name)) => self.iteration(path, name).map(Step::Each),
            _ => None,
        };
        step.ok_or_else(|| self.refused(index, INDEX))
    }

    /// Returns the iteration over a part of the document that a variable in its index stands for.
    fn iteration(&mut self, path: &Path, name: &str) -> Option<usize> {
        let next = self.next_iteration();
        if name == "_" {
            return Some(next);
        }
        let (_, origin) = self.variables.iter_mut().find(|(known, _)| known == name)?;
        match origin.get_or_insert_with(|| Origin::Key(path.clone(), next)) {
            Origin::Key(of, iteration) if of == path => Some(*iteration),
            _ => None,
        }
    }

    /// Traces an index of a value without parts of the document, such as a table of limits.
    fn index_apart(&mut self, index: &Value, allowed: Allowed) -> Traced<Origin> {
        let name = index["Var"]["value"].as_str();
        if name == Some("_") {
            return Ok(Origin::Apart);
        }
        if let Some((_, origin @ None)) =
            self.variables.iter_mut().find(|(known, _)| Some(known.as_str()) == name)
        {
            *origin = Some(Origin::Apart);
        }
        match self.value(index, Allowed { null: false, ..allowed })? {
            Origin::Key(..) => Err(self.refused(index, COMPARED)),
            _ => Ok(Origin::Apart),
        }
    }

    fn next_iteration(&mut self) -> usize {
        self.iterations += 1;
        self.iterations
    }

    fn refused(&self, expression: &Value, why: impl Into<String>) -> CompileError {
        syntax::refused(self.text, begin(expression), why)
    }
}

fn is_variable(expression: &Value) -> bool {
    !expression["Var"].is_null()
}

fn extended(mut path: Path, step: Step) -> Path {
    path.push(step);
    path
}

/// Returns the place of an expression's first word. The engine gives the place of the last step for a path.
fn begin(expression: &Value) -> &Value {
    match node(expression) {
        Ok(("RefDot" | "RefBrack", parts)) => begin(&parts["refr"]),
        Ok(("Call", parts)) => begin(&parts["fcn"]),
        Ok((_, parts)) => &parts["span"],
        Err(_) => &Value::Null,
    }
}

impl Statement {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if both statements are equal, apart from their positions.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.tree == other.tree
    }

    /// Returns the literal names on the path to each member.
    pub(crate) fn members(&self) -> impl Iterator<Item = Vec<&str>> {
        self.members.iter().map(|member| member.path.iter().map_while(Step::name).collect())
    }

    /// Returns `true` if the document has every member that the statement needs.
    pub(crate) fn is_complete(&self, document: &regorus::Value) -> bool {
        self.members
            .iter()
            .all(|member| member.allowed.absent || is_there(document, &member.path, member.allowed.null))
    }
}

fn is_there(value: &regorus::Value, path: &[Step], may_be_null: bool) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return may_be_null || !matches!(value, regorus::Value::Null);
    };
    match (step, value) {
        (Step::Name(name), regorus::Value::Object(members)) => {
            members.get(&name.as_str().into()).is_some_and(|member| is_there(member, rest, may_be_null))
        }
        (Step::Item(at), regorus::Value::Array(items)) => {
            items.get(*at).is_some_and(|item| is_there(item, rest, may_be_null))
        }
        (Step::Each(_), regorus::Value::Object(members)) => {
            members.values().all(|member| is_there(member, rest, may_be_null))
        }
        (Step::Each(_), regorus::Value::Array(items)) => {
            items.iter().all(|item| is_there(item, rest, may_be_null))
        }
        _ => false,
    }
}
