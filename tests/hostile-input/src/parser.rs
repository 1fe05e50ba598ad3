//! The parsers by name.

use crate::promises;
use crate::promises::Verdict;
use crate::seeds;
use crate::vap::vap;

/// A parser that reads what strangers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parser {
    /// Signed and Transparent Statements.
    Statement,
    /// Receipts of this and other logs.
    Receipt,
    /// Concise problem details.
    Problem,
    /// One CBOR item of any kind.
    Cbor,
    /// Strict JSON.
    Json,
    /// Signed notes, checkpoints in them, proofs and requests around them, and policies on who must have signed.
    Note,
    /// Statements of every content type that is understood.
    Record,
    /// Payloads in JSON, read as each content type that is.
    Payload,
    /// Conditions of a policy.
    Condition,
    /// What an agent sends to a gateway.
    Vap,
}

/// What a mutation may rely on.
#[derive(Clone, Copy, Debug)]
pub enum Syntax {
    /// CBOR, also inside byte strings.
    Cbor,
    /// Text: where its pieces end, and words that mean something in it.
    Text {
        /// Bytes between which a piece stands.
        separators: &'static [u8],
        /// Words of the language, and words just outside of it.
        words: &'static [&'static str],
    },
}

const JSON: Syntax = Syntax::Text {
    separators: b"{}[],:\"",
    words: &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "null",
        "true",
        "false",
        "\"\":0,\"\":0",
        "-0",
        "1e999",
        "1e-999",
        "0.1",
        "9007199254740993",
        "18446744073709551616",
        "\\u0000",
        "\\ud800",
        "\\udc00\\ud800",
        "\\u00",
        "\u{feff}",
        "\u{2028}",
        "$serde_json::private::Number",
        " ",
        "\t",
        "\u{0}",
        "//",
        "NaN",
    ],
};

const NOTE: Syntax = Syntax::Text {
    separators: b"\n \xe2+",
    words: &[
        "\n",
        "\n\n",
        "\u{2014} ",
        "-- ",
        "+",
        "=",
        "/",
        "\r\n",
        "0",
        "-1",
        "007",
        "18446744073709551615",
        "18446744073709551616",
        "log.example/test",
        "old 0\n\n",
        "index ",
        "log ",
        "witness w ",
        "group g any w\n",
        "quorum none\n",
        "https://w",
        "AAAA",
        "A===",
        "\t",
        "\u{0}",
        "\u{85}",
    ],
};

const CONDITION: Syntax = Syntax::Text {
    separators: b" \n;.,()[]{}",
    words: &[
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ";",
        ":",
        "|",
        "\"",
        "`",
        "#",
        "\n",
        ":=",
        "=",
        "==",
        "!=",
        "<",
        "*",
        "%",
        "in",
        "some",
        "every",
        "not",
        "with",
        "as",
        "else",
        "if",
        "default",
        "import",
        "package",
        "contains",
        "data",
        "input",
        "holds",
        "_",
        "true",
        "null",
        "set()",
        "count(",
        "regex.match(`",
        "time.now_ns()",
        "[x | x := ",
        "{x: y | ",
        "some x in ",
        "every x in ",
        "9999999999999999999999999999",
        "1e308",
        "0x",
        "$\"{",
        "\u{0}",
    ],
};

impl Parser {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Statement,
        Self::Receipt,
        Self::Problem,
        Self::Cbor,
        Self::Json,
        Self::Note,
        Self::Record,
        Self::Payload,
        Self::Condition,
        Self::Vap,
    ];

    /// Its name, which is also its fuzz target's and its corpus's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Receipt => "receipt",
            Self::Problem => "problem",
            Self::Cbor => "cbor",
            Self::Json => "json",
            Self::Note => "note",
            Self::Record => "record",
            Self::Payload => "payload",
            Self::Condition => "condition",
            Self::Vap => "vap",
        }
    }

    /// Gives it an input.
    ///
    /// # Panics
    /// When it breaks its promise.
    pub fn try_on(self, input: &[u8]) -> Verdict {
        match self {
            Self::Statement => promises::statement(input),
            Self::Receipt => promises::receipt(input),
            Self::Problem => promises::problem(input),
            Self::Cbor => promises::cbor(input),
            Self::Json => promises::json(input),
            Self::Note => promises::note(input),
            Self::Record => promises::record(input),
            Self::Payload => promises::payload(input),
            Self::Condition => promises::condition(input),
            Self::Vap => vap(input),
        }
    }

    /// How its inputs are built.
    pub const fn syntax(self) -> Syntax {
        match self {
            Self::Statement | Self::Receipt | Self::Problem | Self::Cbor | Self::Record => Syntax::Cbor,
            Self::Json | Self::Payload | Self::Vap => JSON,
            Self::Note => NOTE,
            Self::Condition => CONDITION,
        }
    }

    /// Inputs to start from: the golden vectors and the fuzzers' corpus, in the same order on every machine.
    ///
    /// # Panics
    /// When there are none: then the tree is incomplete.
    pub fn seeds(self) -> Vec<Vec<u8>> {
        seeds::of(self)
    }
}
