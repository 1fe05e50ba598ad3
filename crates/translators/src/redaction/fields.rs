//! Patterns of JSON pointers (RFC 6901) that name values to leave out. `*` is any one step, `**` any number of steps.

use std::fmt;
use std::str::FromStr;

/// A pattern of a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPattern {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Any,
    AnyNumber,
}

impl FieldPattern {
    /// Returns whether the pattern names the value at this path. Linear in the length of both.
    pub(super) fn matches(&self, path: &[String]) -> bool {
        let mut reached = vec![false; self.steps.len() + 1];
        reached[0] = true;
        self.skip_empty(&mut reached);
        for name in path {
            let mut next = vec![false; reached.len()];
            for (at, step) in self.steps.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match step {
                    Step::Name(wanted) if wanted == name => next[at + 1] = true,
                    Step::Name(_) => {}
                    Step::Any => next[at + 1] = true,
                    Step::AnyNumber => next[at] = true,
                }
            }
            self.skip_empty(&mut next);
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// Returns whether a step is a number, as those to items of arrays are.
    pub(super) fn names_a_position(&self) -> bool {
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        self.steps.iter().any(|step| matches!(step, Step::Name(name) if is_number(name)))
    }

    /// `**` may stand for no step at all.
    fn skip_empty(&self, reached: &mut [bool]) {
        for (at, step) in self.steps.iter().enumerate() {
            if reached[at] && *step == Step::AnyNumber {
                reached[at + 1] = true;
            }
        }
    }
}

impl FromStr for FieldPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix('/').ok_or("a JSON pointer begins with '/'")?;
        let step = |step: &str| match step {
            "*" => Step::Any,
            "**" => Step::AnyNumber,
            name => Step::Name(name.replace("~1", "/").replace("~0", "~")),
        };
        Ok(FieldPattern { text: text.to_owned(), steps: rest.split('/').map(step).collect() })
    }
}

impl fmt::Display for FieldPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
