//! `tabellion proof`: fetches inclusion and consistency proofs, and verifies them offline before they are printed.

mod consistency;
mod inclusion;

use std::path::Path;

use clap::Subcommand;
use data_encoding::BASE64;
use merkle::{EntryDigest, Hash};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use verifier::{Check, CheckState, Code, VerificationOutcome};

use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, safe};
use crate::context::Context;
use crate::show;
use crate::verification::{exit, explanation};

/// The media type of a C2SP tlog-proof.
const TLOG_PROOF: &str = "text/x.tlog.proof";

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion proof inclusion report.json.cose --verify")]
pub enum Proof {
    /// Fetch the proof that an entry is in the tree
    Inclusion(Box<inclusion::Inclusion>),
    /// Fetch the proof that one tree is a prefix of a larger one
    Consistency(Box<consistency::Consistency>),
}

impl Proof {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Inclusion(command) => command.run(context),
            Self::Consistency(command) => command.run(context),
        }
    }
}

/// A hash in hexadecimal, as the service writes it in JSON.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Hex(EntryDigest);

impl Hex {
    fn hash(self) -> Hash {
        Hash::from_bytes(*self.0.as_bytes())
    }
}

impl TryFrom<String> for Hex {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self).map_err(|_| "not 32 bytes in hexadecimal")
    }
}

/// Prints the successful checks, or fails with those that did not succeed.
fn tell(
    context: &Context,
    answer: (VerificationOutcome, Option<Code>),
    checks: &[Check],
) -> Result<(), Failure> {
    let (outcome, reason) = answer;
    if outcome == VerificationOutcome::Verified {
        let held = checks.iter().filter(|check| check.state == CheckState::Ok);
        held.for_each(|check| {
            context.console.note(format!("ok    {:20}  {}", check.name.label(), check.detail))
        });
        return Ok(());
    }
    let code = reason.unwrap_or(Code::NotReached);
    let failure = Failure::new(exit(outcome), code.as_str(), explanation(code));
    let open = checks.iter().filter(|check| check.state != CheckState::Ok);
    Err(open.fold(failure, |failure, check| failure.fact(check.name.as_str(), &*check.detail)))
}

/// Writes a binary or text proof unchanged; with `--json` on stdout, as a member of an object.
fn hand_over(
    context: &Context,
    output: &Path,
    form: &'static str,
    proof: &[u8],
    verified: bool,
) -> Result<(), Failure> {
    if output != Path::new("-") || !context.console.json {
        return write(output, proof);
    }
    let text = match form {
        TLOG_PROOF => String::from_utf8_lossy(proof).into_owned(),
        _ => BASE64.encode(proof),
    };
    print(context, &json!({ "media_type": form, "proof": text, "verified": verified }))
}

fn write(output: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::write(output, bytes, Access::Ordinary, Existing::Replace)
}

/// Writes a proof in JSON, for display on stdout or to a file.
fn write_json(context: &Context, output: &Path, view: Json) -> Result<(), Failure> {
    match output == Path::new("-") {
        true => print(context, &view),
        false => write(output, format!("{view}\n").as_bytes()),
    }
}

fn print(context: &Context, view: &Json) -> Result<(), Failure> {
    context.console.print(view, |out| {
        let Json::Object(members) = view else { return writeln!(out, "{}", safe(&view.to_string())) };
        let plain =
            members.iter().filter(|(_, value)| !value.is_array() && !value.to_string().contains("\\n"));
        show::lines(out, 0, &plain.map(|(name, value)| (name.clone(), value.clone())).collect())?;
        for hash in show::items(view, "path") {
            writeln!(out, "path  {}", safe(hash.as_str().unwrap_or_default()))?;
        }
        for text in members.get("checkpoint").and_then(Json::as_str).into_iter().flat_map(str::lines) {
            writeln!(out, "checkpoint  {}", safe(text))?;
        }
        Ok(())
    })
}
