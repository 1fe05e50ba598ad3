//! The request of `vrf check` and `vrf recheck`: a file, or made of files of the work and of the checks. To repeat the
//! checks of a receipt, it has the receipt's task, subject and limits.

use std::path::{Path, PathBuf};
use std::time::Instant;

use check_runner::RunnerProcess;
use checks::jobs::NoEngines;
use checks::{CheckRequest, Report, RunChecks, RunError, run_checks};
use clap::Args;
use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use crate::console::{Exit, Failure, files};

/// Members of a request that a receipt states, and where.
const REPEATED: [(&str, &str); 4] = [
    ("tier", "/tier"),
    ("task", "/task"),
    ("subject", "/subject"),
    ("limits", "/metadata/sandbox_config/limits"),
];
/// Endings of files in a language that the engines know.
const LANGUAGES: [(&str, &str); 2] = [("py", "python"), ("js", "javascript")];

#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The request (JSON) with work and checks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["artifact", "language", "specification", "sub", "checks"])]
    request: Option<PathBuf>,
    /// A file of the work; the first is run
    #[arg(long, value_name = "FILE", required_unless_present = "request", requires = "checks")]
    artifact: Vec<PathBuf>,
    /// javascript or python [default: by file ending]
    #[arg(long)]
    language: Option<String>,
    /// What the work was to fulfil (JSON)
    #[arg(long, value_name = "FILE")]
    specification: Option<PathBuf>,
    /// The agent whose work it is: a DID or URN
    #[arg(long, value_name = "DID")]
    sub: Option<String>,
    #[command(flatten)]
    checks: ChecksArgs,
}

/// The checks of one tier.
#[derive(Debug, Args)]
#[group(id = "checks", multiple = true)]
pub struct ChecksArgs {
    /// Test cases (JSON), tier 0
    #[arg(long, value_name = "FILE")]
    tests: Option<PathBuf>,
    /// A JSON Schema, tier 1
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Constraints (JSON), tier 1
    #[arg(long, value_name = "FILE")]
    constraints: Option<PathBuf>,
    /// Properties for generated inputs (JSON), tier 2
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// A proof obligation (JSON), tier 3
    #[arg(long, value_name = "FILE")]
    obligation: Option<PathBuf>,
}

impl RequestArgs {
    /// Reads the request.
    pub fn read(&self) -> Result<CheckRequest, Failure> {
        self.read_with(json!({}))
    }

    /// Reads the request that repeats the checks of a receipt. If it is not a file, it has the task, subject, tier and limits
    /// of the receipt, as far as the receipt states them.
    pub fn read_again(&self, receipt: &Value) -> Result<CheckRequest, Failure> {
        let stated = REPEATED.into_iter().filter_map(|(name, pointer)| {
            let value = receipt.pointer(pointer).filter(|value| !value.is_null())?;
            Some((name.to_owned(), value.clone()))
        });
        self.read_with(stated.collect())
    }

    /// Reads the request; `stated` are members of one that is made here.
    fn read_with(&self, stated: Value) -> Result<CheckRequest, Failure> {
        let bytes = match &self.request {
            Some(file) => files::read(file)?,
            None => jose::jcs::canonical(&self.assemble(stated)?),
        };
        CheckRequest::parse(&bytes).map_err(|error| {
            Failure::new(Exit::Failure, "check-request", "this request cannot be run")
                .fact("where", if error.pointer.is_empty() { "the top level" } else { &error.pointer })
                .fact("found", error.message)
        })
    }

    /// The language: the given one, else that of the ending of the first file.
    fn language(&self) -> Option<&str> {
        let ending = self.artifact.first().and_then(|file| file.extension()?.to_str());
        let of_ending = LANGUAGES.iter().find(|(known, _)| ending == Some(known)).map(|(_, name)| *name);
        self.language.as_deref().or(of_ending)
    }

    /// Returns the file that results are named after.
    pub fn named_after(&self) -> &Path {
        self.request.as_deref().or(self.artifact.first().map(PathBuf::as_path)).unwrap_or(Path::new("check"))
    }

    /// Makes the request of the files and of what is stated.
    fn assemble(&self, mut request: Value) -> Result<Value, Failure> {
        let mut artifact = json!({ "files": artifact_files(&self.artifact)? });
        if let Some(first) = self.artifact.first() {
            artifact["entry"] = name(first)?.into();
        }
        if let Some(language) = self.language() {
            artifact["language"] = language.into();
        }
        request["artifact"] = artifact;
        for (tier, member, file) in self.checks.given() {
            if request.get("tier").is_none() {
                request["tier"] = tier.into();
            }
            request[member] = files::read_json(file)?;
        }
        if let Some(specification) = &self.specification {
            request["specification"] = files::read_json(specification)?;
        }
        if let Some(sub) = &self.sub {
            request["subject"] = sub.clone().into();
        }
        Ok(request)
    }
}

impl ChecksArgs {
    /// The files that are given, with their tier and their member of the request.
    fn given(&self) -> impl Iterator<Item = (u8, &'static str, &Path)> {
        let choices = [
            (0, "tests", &self.tests),
            (1, "schema", &self.schema),
            (1, "constraints", &self.constraints),
            (2, "properties", &self.properties),
            (3, "obligation", &self.obligation),
        ];
        choices.into_iter().filter_map(|(tier, name, file)| Some((tier, name, file.as_deref()?)))
    }
}

fn artifact_files(paths: &[PathBuf]) -> Result<Map<String, Value>, Failure> {
    let mut all = Map::new();
    for path in paths {
        let content = match String::from_utf8(files::read(path)?) {
            Ok(text) => Value::from(text),
            Err(error) => json!({ "base64": BASE64.encode(error.as_bytes()) }),
        };
        if all.insert(name(path)?, content).is_some() {
            let what = format!("two files of the work are named {}", name(path)?);
            return Err(
                Failure::new(Exit::Usage, "usage", what).hint("name them in a request: --request FILE")
            );
        }
    }
    Ok(all)
}

fn name(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::Usage, "usage", format!("{} is not a file name", path.display())))
}

/// Runs the checks in a runner process; those of tier 1 need none.
pub fn run(request: &CheckRequest) -> Result<Report, Failure> {
    let report = match request.tier() {
        1 => {
            let begun = Instant::now();
            run_checks(request, &NoEngines::default(), &|| begun.elapsed())
        }
        _ => {
            let runner = RunnerProcess::start().map_err(|error| runner_failed(&error))?;
            runner.run(request)
        }
    };
    report.map_err(|error| match error {
        RunError::Unavailable { facility, refused } => {
            let what = format!("{facility} cannot be run here");
            let failure = Failure::new(Exit::NotVerified, "engine-unavailable", what);
            refused.into_iter().fold(failure, |failure, why| failure.fact("missing", why))
        }
        other => runner_failed(&other),
    })
}

fn runner_failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failure, "runner-failed", error.to_string())
}

/// Returns the verifier's name in receipts.
pub fn verifier() -> String {
    format!("tabellion/{}", env!("CARGO_PKG_VERSION"))
}
