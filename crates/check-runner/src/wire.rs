//! The forms of batches and outcomes in a line. Bytes of the work and of its output are base64.

use std::collections::BTreeMap;
use std::time::Duration;

use checks::{Batch, Facility, JobEnd};
use data_encoding::BASE64;
use sandbox::{Call, Ending, Limits, Outcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes, as base64 in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map(Self).map_err(de::Error::custom)
    }
}

/// A batch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchLine {
    facility: Facility,
    files: BTreeMap<String, Base64>,
    calls: Vec<CallForm>,
    limits: LimitsForm,
    total_ms: u64,
}

/// A call; see [`Call`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum CallForm {
    Function { language: sandbox::Language, file: String, function: String, arguments: String },
    Program { command: Vec<String>, stdin: Base64 },
}

/// The bounds of each run; see [`Limits`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsForm {
    fuel: u64,
    memory: u64,
    output: u64,
    processes: u32,
    time_ms: u64,
}

/// How the calls of a batch ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerLine {
    ends: Vec<EndForm>,
}

/// The end of a call; see [`JobEnd`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum EndForm {
    Ran {
        ending: Ending,
        value: Option<Base64>,
        stdout: Base64,
        stderr: Base64,
        fuel: Option<u64>,
        elapsed_ms: u64,
    },
    Failed {
        message: String,
    },
    NotStarted {},
}

impl From<&Batch> for BatchLine {
    fn from(batch: &Batch) -> Self {
        let Limits { fuel, memory, output, processes, time } = batch.limits;
        Self {
            facility: batch.facility,
            files: batch.files.iter().map(|(path, bytes)| (path.clone(), Base64(bytes.clone()))).collect(),
            calls: batch.calls.iter().map(CallForm::from).collect(),
            limits: LimitsForm { fuel, memory, output, processes, time_ms: milliseconds(time) },
            total_ms: milliseconds(batch.total_time),
        }
    }
}

impl From<BatchLine> for Batch {
    fn from(line: BatchLine) -> Self {
        let LimitsForm { fuel, memory, output, processes, time_ms } = line.limits;
        Self {
            facility: line.facility,
            files: line.files.into_iter().map(|(path, bytes)| (path, bytes.0)).collect(),
            calls: line.calls.into_iter().map(Call::from).collect(),
            limits: Limits { fuel, memory, output, processes, time: Duration::from_millis(time_ms) },
            total_time: Duration::from_millis(line.total_ms),
        }
    }
}

impl From<&Call> for CallForm {
    fn from(call: &Call) -> Self {
        match call.clone() {
            Call::Function { language, file, function, arguments } => {
                Self::Function { language, file, function, arguments }
            }
            Call::Program { command, stdin } => Self::Program { command, stdin: Base64(stdin) },
        }
    }
}

impl From<CallForm> for Call {
    fn from(form: CallForm) -> Self {
        match form {
            CallForm::Function { language, file, function, arguments } => {
                Self::Function { language, file, function, arguments }
            }
            CallForm::Program { command, stdin } => Self::Program { command, stdin: stdin.0 },
        }
    }
}

impl From<Vec<JobEnd>> for AnswerLine {
    fn from(ends: Vec<JobEnd>) -> Self {
        Self { ends: ends.into_iter().map(EndForm::from).collect() }
    }
}

impl AnswerLine {
    /// Returns the ends, unless a returned value is not UTF-8.
    pub(crate) fn ends(self) -> Option<Vec<JobEnd>> {
        self.ends.into_iter().map(EndForm::end).collect()
    }
}

impl From<JobEnd> for EndForm {
    fn from(end: JobEnd) -> Self {
        match end {
            JobEnd::Ran(Outcome { ending, value, stdout, stderr, fuel, elapsed_ms }) => Self::Ran {
                ending,
                value: value.map(|value| Base64(value.into_bytes())),
                stdout: Base64(stdout),
                stderr: Base64(stderr),
                fuel,
                elapsed_ms,
            },
            JobEnd::Failed(message) => Self::Failed { message },
            JobEnd::NotStarted => Self::NotStarted {},
        }
    }
}

impl EndForm {
    fn end(self) -> Option<JobEnd> {
        Some(match self {
            Self::Ran { ending, value, stdout, stderr, fuel, elapsed_ms } => JobEnd::Ran(Outcome {
                ending,
                value: value.map(|value| String::from_utf8(value.0)).transpose().ok()?,
                stdout: stdout.0,
                stderr: stderr.0,
                fuel,
                elapsed_ms,
            }),
            Self::Failed { message } => JobEnd::Failed(message),
            Self::NotStarted {} => JobEnd::NotStarted,
        })
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use checks::limits::{ARTIFACT_BYTES, BATCH_INPUT, REQUEST_BYTES};

    use super::*;
    use crate::limits::BATCH_LINE_BYTES;

    #[test]
    fn the_longest_batch_fits_a_line_whatever_its_arguments_are() {
        let escaped = "\"".repeat(BATCH_INPUT);
        // The canonical form of a request's arguments that are `1e20` again and again.
        let numbers = "100000000000000000000,".repeat(REQUEST_BYTES / "1e20,".len());
        for arguments in [escaped, numbers] {
            let call = Call::Function {
                language: sandbox::Language::Python,
                file: "main.py".into(),
                function: "main".into(),
                arguments,
            };
            let batch = Batch {
                facility: Facility::Python,
                files: BTreeMap::from([("main.py".into(), vec![0; ARTIFACT_BYTES])]),
                calls: vec![call],
                limits: Limits { fuel: 1, memory: 2, output: 3, processes: 4, time: Duration::ZERO },
                total_time: Duration::ZERO,
            };
            let line = serde_json::to_string(&BatchLine::from(&batch)).unwrap();
            assert!(line.len() <= BATCH_LINE_BYTES, "{}", line.len());
        }
    }

    #[test]
    fn batches_and_ends_survive_a_line() {
        let batch = Batch {
            facility: Facility::Program,
            files: BTreeMap::from([("a".into(), vec![0, 255])]),
            calls: vec![Call::Program { command: vec!["./a".into()], stdin: vec![1] }],
            limits: Limits { fuel: 1, memory: 2, output: 3, processes: 4, time: Duration::from_millis(5) },
            total_time: Duration::from_secs(6),
        };
        let line = serde_json::to_string(&BatchLine::from(&batch)).unwrap();
        assert_eq!(Batch::from(jose::json::read_text::<BatchLine>(&line).unwrap()), batch);

        let outcome = Outcome {
            ending: Ending::Exited(3),
            value: Some("1".into()),
            stdout: vec![0],
            stderr: vec![],
            fuel: None,
            elapsed_ms: 7,
        };
        let ends = vec![JobEnd::Ran(outcome), JobEnd::Failed("x".into()), JobEnd::NotStarted];
        let line = serde_json::to_string(&AnswerLine::from(ends.clone())).unwrap();
        assert_eq!(jose::json::read_text::<AnswerLine>(&line).unwrap().ends(), Some(ends));
        assert!(jose::json::read_text::<AnswerLine>(r#"{"ends":[{"ran":{}}]}"#).is_err());
    }
}
