//! The members of the document that a condition refers to, and the check whether a document has them.
//!
//! Not here: the allowed elements of a condition (`allowed`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::source;

/// Functions that accept `null` as an ordinary argument.
const TAKE_NULL: &[&str] =
    &["is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name"];

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
    path: Vec<Step>,
    /// `true` if the statement is meaningful without the member.
    may_be_absent: bool,
    /// `true` if `null` is an ordinary value of the member in this statement.
    may_be_null: bool,
}

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member with this name.
    Name(String),
    /// Every item or member, for an index that is not a literal name.
    Each,
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Step::Name(name) => Some(name),
            Step::Each => None,
        }
    }
}

/// The paths in the document that variables stand for.
type Variables = BTreeMap<String, Vec<Step>>;

/// Returns the statements of a syntax tree.
pub(crate) fn statements(text: &str, tree: &Value) -> Vec<Statement> {
    let query = &tree[0]["ast"]["rules"][0]["Spec"]["bodies"][0]["query"]["stmts"];
    let start = source::range(text).start;
    let place = |span: &Value, end: &str| usize::try_from(span[end].as_u64()?).ok()?.checked_sub(start);
    let written = |span: &Value| text.get(place(span, "start")?..place(span, "end")?);
    let mut variables = Variables::new();
    declare(query, &written, &mut variables);
    let all = query.as_array().map_or(&[][..], Vec::as_slice);
    let starts: Vec<usize> = all
        .iter()
        .map(|statement| unquoted(text, place(&statement["span"], "start").unwrap_or_default()))
        .collect();
    let statement = |(at, statement): (usize, &Value)| {
        let mut members = Vec::new();
        collect(&statement["literal"], &variables, (false, false), &mut members);
        let end = starts.get(at + 1).copied().unwrap_or(text.len());
        let text = text.get(starts[at]..end).unwrap_or_default();
        let text = text.trim_end_matches(|end: char| end == ';' || end.is_whitespace());
        let mut tree = statement["literal"].clone();
        forget_places(&mut tree);
        Statement { text: text.to_owned(), tree, members }
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

/// Collects the variables that stand for a part of the document: `some x in input.a`, `every x in input.a`,
/// `x := input.a`.
fn declare<'t>(node: &Value, written: &impl Fn(&Value) -> Option<&'t str>, variables: &mut Variables) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| declare(item, written, variables)),
        Value::Object(members) => {
            for (kind, parts) in members {
                let found = match kind.as_str() {
                    "SomeIn" => item(&parts["collection"], variables).zip(variable(&parts["value"])),
                    "Every" => item(&parts["domain"], variables).zip(written(&parts["value"])),
                    "AssignExpr" => path(&parts["rhs"], variables).zip(variable(&parts["lhs"])),
                    _ => None,
                };
                if let Some((path, name)) = found {
                    variables.insert(name.to_owned(), path);
                }
                declare(parts, written, variables);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn variable(expression: &Value) -> Option<&str> {
    expression["Var"]["value"].as_str()
}

/// Returns the path of the items of a collection.
fn item(collection: &Value, variables: &Variables) -> Option<Vec<Step>> {
    let mut path = path(collection, variables)?;
    path.push(Step::Each);
    Some(path)
}

/// Returns the path in the document that an expression denotes, if it is one.
fn path(expression: &Value, variables: &Variables) -> Option<Vec<Step>> {
    if let Some(name) = variable(expression) {
        return if name == "input" { Some(Vec::new()) } else { variables.get(name).cloned() };
    }
    let (of, step) = match (&expression["RefDot"], &expression["RefBrack"]) {
        (Value::Object(dot), _) => (&dot["refr"], dot["field"][1].as_str()),
        (_, Value::Object(bracket)) => {
            let index = &bracket["index"];
            let name = index["String"]["value"].as_str().or_else(|| index["RawString"]["value"].as_str());
            (&bracket["refr"], name)
        }
        _ => return None,
    };
    let mut path = path(of, variables)?;
    path.push(step.map_or(Step::Each, |name| Step::Name(name.to_owned())));
    Some(path)
}

/// Collects the members that a node refers to, and whether they may be absent or null there.
fn collect(
    node: &Value,
    variables: &Variables,
    (may_be_absent, may_be_null): (bool, bool),
    members: &mut Vec<Member>,
) {
    if let Some(path) = path(node, variables) {
        if !path.is_empty() {
            members.push(Member { path, may_be_absent, may_be_null });
        }
        return indices(node, variables, may_be_absent, members);
    }
    match node {
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, variables, (may_be_absent, may_be_null), members));
        }
        Value::Object(parts) => {
            for (kind, part) in parts {
                let (part, allowed) = match kind.as_str() {
                    "NotExpr" => (part, (true, true)),
                    "SomeIn" => (&part["collection"], (may_be_absent, false)),
                    "Call" => (&part["params"], (may_be_absent, takes_null(part))),
                    "BoolExpr" => (part, (may_be_absent, is_null(&part["lhs"]) || is_null(&part["rhs"]))),
                    _ => (part, (may_be_absent, may_be_null)),
                };
                collect(part, variables, allowed, members);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects the members in the indices of a path.
fn indices(node: &Value, variables: &Variables, may_be_absent: bool, members: &mut Vec<Member>) {
    match (&node["RefDot"], &node["RefBrack"]) {
        (Value::Object(dot), _) => indices(&dot["refr"], variables, may_be_absent, members),
        (_, Value::Object(bracket)) => {
            collect(&bracket["index"], variables, (may_be_absent, false), members);
            indices(&bracket["refr"], variables, may_be_absent, members);
        }
        _ => {}
    }
}

fn takes_null(call: &Value) -> bool {
    variable(&call["fcn"]).is_some_and(|name| TAKE_NULL.contains(&name))
}

fn is_null(expression: &Value) -> bool {
    !expression["Null"].is_null()
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
            .all(|member| member.may_be_absent || is_there(document, &member.path, member.may_be_null))
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
        (Step::Each, regorus::Value::Object(members)) => {
            members.values().all(|member| is_there(member, rest, may_be_null))
        }
        (Step::Each, regorus::Value::Array(items)) => {
            items.iter().all(|item| is_there(item, rest, may_be_null))
        }
        _ => false,
    }
}
