//! The allowed elements of a condition: its syntax tree is walked, and everything that is not listed here is refused.
//!
//! Functions are excluded for one of three reasons: their result does not depend on their arguments alone (clock,
//! randomness, environment), they write output (trace, print), or a single call may take long or produce a large value,
//! while the time limit is checked only between calls (`numbers.range`, `replace`, `concat`, `sprintf`, `product`,
//! `bits.lsh`, searches that compare all with all).

use serde_json::Value;

use crate::error::CompileError;
use crate::limits::{MULTIPLICATIONS, NUMBER_CHARACTERS, STATEMENTS};
use crate::pattern::{self, Patterns};
use crate::source::{self, RULE};
use crate::syntax::{self, list, name, node};

/// The functions that a condition may call.
const FUNCTIONS: &[&str] = &[
    "abs",
    "array.slice",
    "ceil",
    "contains",
    "count",
    "endswith",
    "floor",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "lower",
    "max",
    "min",
    "object.get",
    "object.keys",
    pattern::FUNCTION,
    "round",
    "semver.compare",
    "semver.is_valid",
    "sort",
    "split",
    "startswith",
    "substring",
    "sum",
    "trim_prefix",
    "trim_space",
    "trim_suffix",
    "type_name",
    "upper",
];

/// Checks a condition's syntax tree, and returns its regular expressions as [`Patterns`].
pub(crate) fn walk(text: &str, tree: &Value) -> Result<Patterns, CompileError> {
    let mut walk = Walk { text, statements: 0, multiplications: 0, patterns: Patterns::default() };
    walk.module(&tree[0]["ast"])?;
    Ok(walk.patterns)
}

struct Walk<'a> {
    text: &'a str,
    statements: usize,
    multiplications: usize,
    patterns: Patterns,
}

type Walked = Result<(), CompileError>;

impl Walk<'_> {
    /// Checks that the module has only the expected rule with one body. A text that closes the rule's brace fails here.
    fn module(&mut self, module: &Value) -> Walked {
        let rules = list(&module["rules"]);
        let [rule] = rules else {
            return Err(self.left_its_rule(rules.get(1).unwrap_or(module)));
        };
        let bodies = list(&rule["Spec"]["bodies"]);
        let [body] = bodies else {
            return Err(self.left_its_rule(rule));
        };
        let head = &rule["Spec"]["head"]["Compr"];
        let ours = list(&module["imports"]).is_empty()
            && name(&head["refr"]).as_deref() == Some(RULE)
            && head["assign"].is_null()
            && body["assign"].is_null();
        if !ours {
            return Err(self.left_its_rule(rule));
        }
        list(&body["query"]["stmts"]).iter().try_for_each(|statement| self.is_within(statement))?;
        self.query(&body["query"])
    }

    /// Checks that a statement is within the text. For a text such as `a, b`, the rule's braces form a set, which
    /// always holds; then the statement includes the braces.
    fn is_within(&self, statement: &Value) -> Walked {
        let text = source::range(self.text);
        match syntax::range(&statement["span"]) {
            Some(range) if text.start <= range.start && range.end <= text.end => Ok(()),
            _ => {
                Err(CompileError::at_start("statements are separated by `;` or stand on lines of their own"))
            }
        }
    }

    fn query(&mut self, query: &Value) -> Walked {
        for statement in list(&query["stmts"]) {
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Value) -> Walked {
        self.statements += 1;
        if self.statements > STATEMENTS {
            return Err(self.refused(statement, format!("more than {STATEMENTS} statements")));
        }
        if !list(&statement["with_mods"]).is_empty() {
            return Err(self.refused(statement, "`with` is not allowed"));
        }
        let (kind, parts) = node(&statement["literal"])?;
        match kind {
            "SomeVars" => list(&parts["vars"]).iter().try_for_each(|name| self.declared(name)),
            "SomeIn" => {
                self.declared(&parts["key"]["Var"]["span"])?;
                self.declared(&parts["value"]["Var"]["span"])?;
                self.each(&[&parts["key"], &parts["value"], &parts["collection"]])
            }
            "Expr" | "NotExpr" => self.expression(&parts["expr"]),
            "Every" => {
                self.declared(&parts["key"])?;
                self.declared(&parts["value"])?;
                self.expression(&parts["domain"])?;
                self.query(&parts["query"])
            }
            _ => Err(self.unknown(parts, kind)),
        }
    }

    fn expression(&mut self, expression: &Value) -> Walked {
        let (kind, parts) = node(expression)?;
        match kind {
            "String" | "RawString" | "Bool" | "Null" => Ok(()),
            "Number" => self.number(parts),
            "Var" => self.variable(parts),
            "Array" | "Set" => self.each(&list(&parts["items"]).iter().collect::<Vec<_>>()),
            "Object" => {
                list(&parts["fields"]).iter().try_for_each(|field| self.each(&[&field[1], &field[2]]))
            }
            "ArrayCompr" | "SetCompr" => {
                self.expression(&parts["term"])?;
                self.query(&parts["query"])
            }
            "ObjectCompr" => {
                self.each(&[&parts["key"], &parts["value"]])?;
                self.query(&parts["query"])
            }
            "Call" => self.call(parts),
            "UnaryExpr" => self.expression(&parts["expr"]),
            "RefDot" => self.expression(&parts["refr"]),
            "RefBrack" => self.each(&[&parts["refr"], &parts["index"]]),
            "BinExpr" | "BoolExpr" | "AssignExpr" => self.each(&[&parts["lhs"], &parts["rhs"]]),
            "ArithExpr" => self.arithmetic(parts),
            "Membership" => self.each(&[&parts["key"], &parts["value"], &parts["collection"]]),
            _ => Err(self.unknown(parts, kind)),
        }
    }

    /// Checks each expression. Absent parts are null.
    fn each(&mut self, expressions: &[&Value]) -> Walked {
        expressions.iter().filter(|part| !part.is_null()).try_for_each(|part| self.expression(part))
    }

    fn number(&self, number: &Value) -> Walked {
        if syntax::written(self.text, &number["span"]).chars().count() > NUMBER_CHARACTERS {
            return Err(self.refused(number, format!("a number of more than {NUMBER_CHARACTERS} characters")));
        }
        Ok(())
    }

    fn variable(&self, variable: &Value) -> Walked {
        match variable["value"].as_str().unwrap_or("data") {
            name @ ("data" | RULE) => {
                Err(self.refused(variable, format!("`{name}` is not allowed: a condition sees `input` only")))
            }
            _ => Ok(()),
        }
    }

    fn arithmetic(&mut self, parts: &Value) -> Walked {
        self.multiplications += usize::from(parts["op"] == "Mul");
        if self.multiplications > MULTIPLICATIONS {
            return Err(self.refused(parts, format!("more than {MULTIPLICATIONS} multiplications")));
        }
        self.each(&[&parts["lhs"], &parts["rhs"]])
    }

    fn call(&mut self, call: &Value) -> Walked {
        let name = name(&call["fcn"]).unwrap_or_default();
        if !FUNCTIONS.contains(&name.as_str()) {
            return Err(self.refused(first(&call["fcn"]), format!("the function `{name}` is not allowed")));
        }
        let arguments = list(&call["params"]);
        if name == pattern::FUNCTION {
            self.pattern(call, arguments.first().unwrap_or(&Value::Null))?;
        }
        self.each(&arguments.iter().collect::<Vec<_>>())
    }

    fn pattern(&mut self, call: &Value, argument: &Value) -> Walked {
        let literal = [&argument["String"], &argument["RawString"]].into_iter().find(|part| !part.is_null());
        let Some((literal, text)) = literal.and_then(|literal| Some((literal, literal["value"].as_str()?)))
        else {
            return Err(self.refused(first(&call["fcn"]), "the pattern of regex.match must be written out"));
        };
        self.patterns
            .add(text)
            .map_err(|_| self.refused(literal, "the pattern is not a regular expression, or too large a one"))
    }

    /// Checks a variable that a statement declares. It must not be `input`, which always is the document.
    fn declared(&self, span: &Value) -> Walked {
        match syntax::written(self.text, span) {
            "input" => Err(syntax::refused(self.text, span, "`input` is the document: declare another name")),
            _ => Ok(()),
        }
    }

    fn unknown(&self, parts: &Value, kind: &str) -> CompileError {
        self.refused(parts, format!("{kind} is not allowed in a condition"))
    }

    fn left_its_rule(&self, part: &Value) -> CompileError {
        let part = if part["Spec"].is_null() { &part["Default"] } else { &part["Spec"] };
        self.refused(part, "a condition is the body of one rule: it cannot close it or begin another")
    }

    fn refused(&self, part: &Value, why: impl Into<String>) -> CompileError {
        syntax::refused(self.text, &part["span"], why)
    }
}

/// Returns the first name of a dotted name. The engine gives the position of the last dot for the whole.
fn first(name: &Value) -> &Value {
    if name["RefDot"].is_null() { &name["Var"] } else { first(&name["RefDot"]["refr"]) }
}
