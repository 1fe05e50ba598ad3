//! Proof obligations (tier 3): SMT-LIB scripts that assert the negation of a claim.
//!
//! The script is parsed as S-expressions, and only commands that declare, define and assert are allowed, with one
//! `(check-sat)` at the end: no options, no output channels, no includes, nothing that one solver understands and
//! another does not.
//!
//! Not here: running the solvers ([`check`](crate::check)).

use crate::error::{Form, Members, RequestError, only};
use crate::limits::{OBLIGATION_BYTES, OBLIGATION_COMMANDS, OBLIGATION_DEPTH};

/// The logics of SMT-LIB that both solvers know.
pub const LOGICS: [&str; 17] = [
    "QF_UF", "QF_BV", "QF_ABV", "QF_AUFBV", "QF_AX", "QF_IDL", "QF_RDL", "QF_LIA", "QF_LRA", "QF_NIA",
    "QF_NRA", "QF_UFLIA", "QF_S", "LIA", "LRA", "UFLIA", "ALL",
];
/// The commands that a script may have, besides one `check-sat`.
pub const COMMANDS: [&str; 13] = [
    "set-logic",
    "set-info",
    "declare-const",
    "declare-fun",
    "declare-sort",
    "declare-datatype",
    "declare-datatypes",
    "define-const",
    "define-fun",
    "define-fun-rec",
    "define-funs-rec",
    "define-sort",
    "assert",
];

/// A formula that is unsatisfiable if the claim holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obligation {
    /// The script for the solvers.
    pub script: String,
}

impl Obligation {
    pub(super) fn read(top: &Members<'_>) -> Result<Self, RequestError> {
        let obligation = top.object("obligation")?;
        only(&obligation, &["smtlib", "logic"])?;
        let logic = obligation.word(Form, "logic", &LOGICS)?;
        let text = obligation.text("smtlib")?;
        let script = check(text, logic).map_err(|why| obligation.broken(Form, "smtlib", why))?;
        Ok(Self { script })
    }
}

/// Checks the commands of a script, and returns it with its logic first.
fn check(text: &str, logic: &str) -> Result<String, String> {
    if text.len() > OBLIGATION_BYTES {
        return Err(format!("the script is longer than {OBLIGATION_BYTES} bytes"));
    }
    let commands = commands(text)?;
    let (last, before) = commands.split_last().ok_or("the script has no command")?;
    if last.name() != "check-sat" || last.words.len() != 1 {
        return Err("the script must end with (check-sat)".to_owned());
    }
    for (index, command) in before.iter().enumerate() {
        command.check(index, logic)?;
    }
    let declares = before.first().is_some_and(|first| first.name() == "set-logic");
    match declares {
        true => Ok(text.to_owned()),
        false => Ok(format!("(set-logic {logic})\n{text}")),
    }
}

/// A command: its words at the first level; a bracket within it is one empty word.
struct Command<'a> {
    line: usize,
    words: Vec<&'a str>,
}

impl Command<'_> {
    fn name(&self) -> &str {
        self.words.first().copied().unwrap_or_default()
    }

    fn check(&self, index: usize, logic: &str) -> Result<(), String> {
        let Self { line, words } = self;
        match self.name() {
            "set-logic" if index != 0 => Err(format!("line {line}: set-logic must be the first command")),
            "set-logic" if words[1..] != [logic] => {
                Err(format!("line {line}: set-logic must name {logic}, as the request does"))
            }
            "check-sat" => Err(format!("line {line}: the script has one (check-sat), at its end")),
            name if COMMANDS.contains(&name) => Ok(()),
            name => Err(format!("line {line}: the command {} is not allowed", jose::members::quote(name))),
        }
    }
}

/// Splits a script into its commands.
fn commands(text: &str) -> Result<Vec<Command<'_>>, String> {
    let mut reader = Tokens { rest: text, line: 1 };
    let mut commands: Vec<Command<'_>> = Vec::new();
    let mut depth = 0_usize;
    while let Some(token) = reader.next()? {
        match (token, depth) {
            ("(", 0) => commands.push(Command { line: reader.line, words: Vec::new() }),
            (_, 0) => return Err(format!("line {}: a command in brackets is needed here", reader.line)),
            (")", _) => {}
            (word, 1) => {
                let word = if word == "(" { "" } else { word };
                commands.last_mut().ok_or("no command")?.words.push(word);
            }
            _ => {}
        }
        depth = match token {
            "(" => depth + 1,
            ")" => depth - 1,
            _ => depth,
        };
        if depth > OBLIGATION_DEPTH || commands.len() > OBLIGATION_COMMANDS {
            return Err(format!("line {}: too many or too deeply nested commands", reader.line));
        }
    }
    match depth {
        0 => Ok(commands),
        _ => Err("the script ends within a command".to_owned()),
    }
}

/// The tokens of a script (SMT-LIB 2.6, section 3.1).
struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Option<&'a str>, String> {
        self.skip_space();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let length = match first {
            '(' | ')' => 1,
            '"' => self.string()?,
            '|' => self.quoted('|', 1)?,
            _ => self.word()?,
        };
        let (token, rest) = self.rest.split_at(length);
        self.line += token.matches('\n').count();
        self.rest = rest;
        Ok(Some(token))
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            let end =
                self.rest.find(|c: char| !matches!(c, ' ' | '\t' | '\r' | '\n')).unwrap_or(self.rest.len());
            let end = match self.rest[end..].starts_with(';') {
                true => self.rest[end..].find('\n').map_or(self.rest.len(), |newline| end + newline),
                false if end == 0 => return,
                false => end,
            };
            self.line += self.rest[..end].matches('\n').count();
            self.rest = &self.rest[end..];
        }
    }

    /// Returns the length of a string, in which two quotes are one.
    fn string(&self) -> Result<usize, String> {
        let mut end = self.quoted('"', 1)?;
        while self.rest[end..].starts_with('"') {
            end = self.quoted('"', end + 1)?;
        }
        Ok(end)
    }

    /// Returns the end of a text that ends with a quote, searched from `from`.
    fn quoted(&self, quote: char, from: usize) -> Result<usize, String> {
        let end = self.rest[from..].find(quote);
        end.map(|end| from + end + 1).ok_or_else(|| format!("line {}: a quote is not closed", self.line))
    }

    fn word(&self) -> Result<usize, String> {
        let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '(' | ')' | '"' | '|' | ';');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        match word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            true => Ok(end),
            false => Err(format!("line {}: a symbol has a character that is not allowed", self.line)),
        }
    }
}
