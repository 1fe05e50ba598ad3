//! What a condition may say: the tree that the engine read is walked, and what is not named here is
//! refused.
//!
//! Functions are left out for one of three reasons: they are not functions of their arguments (the
//! clock, randomness, the surroundings), they speak (trace, print), or one call of them may take long
//! or make much of little, where no limit on time is looked at (`numbers.range`, `replace`,
//! `concat`, `sprintf`, `product`, `bits.lsh`, searches that compare all with all).

use serde_json::Value;

use crate::error::CompileError;
use crate::limits::{MULTIPLICATIONS, NUMBER_CHARACTERS, STATEMENTS};
use crate::source::{self, RULE};

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
    PATTERN_FUNCTION,
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

/// The function whose first argument is a regular expression: written in the condition, so that it
/// can be checked when the condition is read.
const PATTERN_FUNCTION: &str = "regex.match";

/// A regular expression of a condition.
pub(crate) struct Pattern {
    text: String,
    place: CompileError,
}

impl Pattern {
    /// Refuses what the engine could not use when it is asked.
    pub(crate) fn check(&self) -> Result<(), CompileError> {
        let mut engine = regorus::Engine::new();
        engine.set_input(self.text.as_str().into());
        match engine.eval_bool_query("regex.is_valid(input)".to_owned(), false) {
            Ok(true) => Ok(()),
            _ => Err(self.place.clone()),
        }
    }
}

/// Walks what was read; answers with its regular expressions.
pub(crate) fn walk(text: &str, tree: &Value) -> Result<Vec<Pattern>, CompileError> {
    let mut walk = Walk { text, statements: 0, multiplications: 0, patterns: Vec::new() };
    walk.module(&tree[0]["ast"])?;
    Ok(walk.patterns)
}

struct Walk<'a> {
    text: &'a str,
    statements: usize,
    multiplications: usize,
    patterns: Vec<Pattern>,
}

type Walked = Result<(), CompileError>;

impl Walk<'_> {
    /// One rule, ours, with the one body that we gave it: a text that closed our brace shows here.
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
            && self.name(&head["refr"]).as_deref() == Some(RULE)
            && head["assign"].is_null()
            && body["assign"].is_null();
        if !ours {
            return Err(self.left_its_rule(rule));
        }
        self.query(&body["query"])
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
        let (kind, parts) = self.node(&statement["literal"])?;
        match kind {
            "SomeVars" => Ok(()),
            "SomeIn" => self.each(&[&parts["key"], &parts["value"], &parts["collection"]]),
            "Expr" | "NotExpr" => self.expression(&parts["expr"]),
            "Every" => {
                self.expression(&parts["domain"])?;
                self.query(&parts["query"])
            }
            _ => Err(self.unknown(parts, kind)),
        }
    }

    fn expression(&mut self, expression: &Value) -> Walked {
        let (kind, parts) = self.node(expression)?;
        match kind {
            "String" | "RawString" | "Bool" | "Null" => Ok(()),
            "Number" => self.number(parts),
            "Var" => self.variable(parts),
            "Array" | "Set" => self.each(&list(&parts["items"]).iter().collect::<Vec<_>>()),
            "Object" => list(&parts["fields"]).iter().try_for_each(|field| self.each(&[&field[1], &field[2]])),
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

    /// Parts that are absent are null.
    fn each(&mut self, expressions: &[&Value]) -> Walked {
        expressions.iter().filter(|part| !part.is_null()).try_for_each(|part| self.expression(part))
    }

    fn number(&self, number: &Value) -> Walked {
        if self.written(number).chars().count() > NUMBER_CHARACTERS {
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
        let name = self.name(&call["fcn"]).unwrap_or_default();
        if !FUNCTIONS.contains(&name.as_str()) {
            return Err(self.refused(call, format!("the function `{name}` is not allowed")));
        }
        let arguments = list(&call["params"]);
        if name == PATTERN_FUNCTION {
            self.pattern(call, arguments.first().unwrap_or(&Value::Null))?;
        }
        self.each(&arguments.iter().collect::<Vec<_>>())
    }

    fn pattern(&mut self, call: &Value, argument: &Value) -> Walked {
        let literal = [&argument["String"], &argument["RawString"]].into_iter().find(|part| !part.is_null());
        let Some((literal, text)) = literal.and_then(|literal| Some((literal, literal["value"].as_str()?))) else {
            return Err(self.refused(call, "the pattern of regex.match must be written out"));
        };
        let place = self.refused(literal, "the pattern is no regular expression, or too large a one");
        self.patterns.push(Pattern { text: text.to_owned(), place });
        Ok(())
    }

    /// A name, dotted or not, as it is written.
    fn name(&self, expression: &Value) -> Option<String> {
        let (kind, parts) = self.node(expression).ok()?;
        match kind {
            "Var" => Some(parts["value"].as_str()?.to_owned()),
            "RefDot" => Some(format!("{}.{}", self.name(&parts["refr"])?, parts["field"][1].as_str()?)),
            _ => None,
        }
    }

    /// A node is an object of one member, named for its kind.
    fn node<'v>(&self, node: &'v Value) -> Result<(&'v str, &'v Value), CompileError> {
        let only = node.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
        only.map(|(kind, parts)| (kind.as_str(), parts))
            .ok_or_else(|| CompileError::at_start("the condition cannot be read"))
    }

    /// The characters of the text that a part was read from.
    fn written(&self, part: &Value) -> &str {
        let module_offset = source::offset();
        let at = |end: &str| part["span"][end].as_u64().and_then(|at| usize::try_from(at).ok());
        let range = at("start")
            .zip(at("end"))
            .and_then(|(start, end)| Some((start.checked_sub(module_offset)?, end.checked_sub(module_offset)?)));
        range.and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default()
    }

    fn unknown(&self, parts: &Value, kind: &str) -> CompileError {
        self.refused(parts, format!("{kind} is not allowed in a condition"))
    }

    fn left_its_rule(&self, part: &Value) -> CompileError {
        let part = if part["Spec"].is_null() { &part["Default"] } else { &part["Spec"] };
        self.refused(part, "a condition is the body of one rule: it cannot close it or begin another")
    }

    fn refused(&self, part: &Value, why: impl Into<String>) -> CompileError {
        let at = |name: &str| part["span"][name].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        source::place(self.text, at("line"), at("col"), why)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
