//! HTTP exchanges as transcripts: requests and expected responses, in readable files.
//!
//! Format: a comment (`#`) states the purpose of an exchange; `>` lines are the request, `<` lines the expectations.
//! The test interprets lines with `body:`. `{name}` is replaced by a text of the test.

use std::path::Path;

use crate::http::{Answer, Connection};

/// Texts and bodies that the test provides for a transcript.
pub trait Cast {
    /// Returns the text for `{name}`.
    fn text(&self, name: &str) -> String;
    /// Returns the bytes of a request body.
    fn body(&self, name: &str) -> Vec<u8>;
    /// Checks a response body. Panics if it is not as expected.
    fn check_body(&self, expected: &str, answer: &Answer);
}

/// One request and the expected response.
struct Exchange {
    line: usize,
    claim: String,
    request: Vec<String>,
    expected: Vec<String>,
}

/// Plays a transcript in `tests/transcripts`, exchange by exchange, and reports all mismatches together.
#[track_caller]
pub fn play(file: &str, connection: &mut Connection, cast: &dyn Cast) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts").join(file);
    let text = std::fs::read_to_string(path).expect("a transcript");
    let mut wrong = Vec::new();
    let exchanges = parse(&text);
    assert!(!exchanges.is_empty());
    for exchange in &exchanges {
        let answer = exchange.send(connection, cast);
        for expected in &exchange.expected {
            let checked =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(expected, &answer, cast)));
            if checked.is_err() {
                wrong.push(format!(
                    "{file}:{}: {}: < {expected}\n  {answer:?}",
                    exchange.line, exchange.claim
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), exchanges.len(), wrong.join("\n"));
}

fn parse(text: &str) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut claim = String::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once(' ') {
            Some(("#", said)) => said.clone_into(&mut claim),
            Some((">", said)) => {
                if exchanges.last().is_none_or(|last| !last.expected.is_empty()) {
                    let (request, expected) = (Vec::new(), Vec::new());
                    exchanges.push(Exchange { line: number + 1, claim: claim.clone(), request, expected });
                }
                exchanges.last_mut().expect("it was pushed").request.push(said.to_owned());
            }
            Some(("<", said)) => {
                exchanges.last_mut().expect("a request comes first").expected.push(said.to_owned());
            }
            _ => assert!(line.is_empty() || line.starts_with('#'), "line {}: {line}", number + 1),
        }
    }
    exchanges
}

impl Exchange {
    fn send(&self, connection: &mut Connection, cast: &dyn Cast) -> Answer {
        let lines: Vec<String> = self.request.iter().map(|line| filled(line, cast)).collect();
        let (method, path) = lines[0].split_once(' ').expect("a method and a path");
        let mut headers = Vec::new();
        let mut body = Vec::new();
        for line in &lines[1..] {
            match line.split_once(": ").expect("name: value") {
                ("body", name) => body = cast.body(name),
                header => headers.push(header),
            }
        }
        connection
            .try_send(method, path, &headers, &body)
            .unwrap_or_else(|silence| panic!("line {}: {silence:?}", self.line))
    }
}

fn check(expected: &str, answer: &Answer, cast: &dyn Cast) {
    if let Ok(status) = expected.parse::<u16>() {
        assert_eq!(answer.status, status);
        return;
    }
    let expected = filled(expected, cast);
    let Some((name, value)) = expected.split_once(": ") else {
        assert_eq!(answer.header(&expected.to_lowercase()), None);
        return;
    };
    match name {
        "body" if value == "empty" => assert!(answer.body.is_empty()),
        "body" => cast.check_body(value, answer),
        "problem" => expect(value, answer.problem().title.as_deref()),
        "detail" => assert!(answer.problem().detail.is_some_and(|detail| detail.starts_with(value))),
        "rule" => expect(value, answer.problem().get_rule()),
        "code" => expect(value, answer.problem().get_code()),
        "offset" => expect(value, answer.problem().get_offset().map(|offset| offset.to_string()).as_deref()),
        header => expect(value, answer.header(&header.to_lowercase())),
    }
}

fn expect(expected: &str, found: Option<&str>) {
    match expected {
        "*" => assert!(found.is_some()),
        exactly => assert_eq!(found, Some(exactly)),
    }
}

/// Returns the line with every `{name}` replaced.
fn filled(line: &str, cast: &dyn Cast) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a closing brace");
        text.push_str(before);
        text.push_str(&cast.text(name));
        rest = after;
    }
    text + rest
}
