//! `tabellion help` and `tabellion version`: help topics, error codes, and the version.

use admission::explain::{Explanation, explain};
use clap::Args;
use registration::aer::AerRule;
use registration::agentroa::{ChainRule, PolicyDocumentRule, RegistryRule};
use registration::clock_correction::ClockCorrectionRule;
use registration::conversation::ConversationRule;
use registration::erasure::ErasureRule;
use registration::index_head::IndexHeadRule;
use registration::jwk_set::JwkSetRule;
use registration::operator::OperatorRule;
use registration::vrf::VrfRule;
use vap::audit::AuditRule;
use vap::reason::Reason;
use vap::verdict::VerdictRule;

use crate::console::{Exit, Failure, members};
use crate::context::Context;

/// The topics of `tabellion help` with their texts.
const TOPICS: &[(&str, &str)] = &[
    ("access", include_str!("../topics/access.txt")),
    ("config", include_str!("../topics/config.txt")),
    ("errors", include_str!("../topics/errors.txt")),
    ("exit-codes", include_str!("../topics/exit-codes.txt")),
    ("formats", include_str!("../topics/formats.txt")),
    ("gateway", include_str!("../topics/gateway.txt")),
    ("keys", include_str!("../topics/keys.txt")),
    ("policies", include_str!("../topics/policies.txt")),
    ("roa", include_str!("../topics/roa.txt")),
    ("trust", include_str!("../topics/trust.txt")),
    ("watching", include_str!("../topics/watching.txt")),
];

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion help exit-codes")]
pub struct Help {
    /// A topic (config, errors, exit-codes, formats, gateway, keys, policies, trust, watching), an error's code, or a command
    topic: Vec<String>,
}

impl Help {
    /// Prints the help on the topic; `program` has all commands.
    pub fn run(self, context: &Context, program: clap::Command) -> Result<(), Failure> {
        let topic = self.topic.join(" ");
        let text = page(&topic)
            .or_else(|| error_code(&topic))
            .or_else(|| reason(&topic))
            .or_else(|| command_help(program, &self.topic));
        match text {
            Some(text) => {
                context.console.print(&members! { topic, text }, |out| out.write_all(text.as_bytes()))
            }
            None => {
                Err(Failure::new(Exit::NotFound, "no-such-topic", format!("there is no help on {topic}"))
                    .fact("topics", TOPICS.map_names())
                    .hint("tabellion --help"))
            }
        }
    }
}

trait Names {
    fn map_names(&self) -> String;
}

impl Names for [(&str, &str)] {
    fn map_names(&self) -> String {
        self.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

fn page(topic: &str) -> Option<String> {
    let (_, text) = TOPICS.iter().find(|(name, _)| *name == topic)?;
    Some(match topic {
        "errors" => format!("{text}\n{}", rules()),
        "gateway" => format!("{text}{}", reasons()),
        _ => (*text).to_owned(),
    })
}

/// Lists the denial reasons, [`Reason::ALL`], with explanations.
fn reasons() -> String {
    let line = |reason: &Reason| format!("  {:<24} {}\n", reason.as_str(), explain(reason).what);
    Reason::ALL.iter().map(line).collect()
}

/// Explains the reason in a Verdict.
fn reason(code: &str) -> Option<String> {
    let reason: Reason = code.parse().ok()?;
    let Explanation { what, remedy } = explain(&reason);
    Some(format!("{code}\n  {what}\n  {remedy}\n"))
}

fn rules() -> String {
    PROFILES.iter().map(Profile::list).collect::<Vec<_>>().join("\n")
}

/// Returns the paragraph about a code in the topic `errors`, whose first line lists one or several codes.
fn error_code(code: &str) -> Option<String> {
    let (_, errors) = TOPICS.iter().find(|(name, _)| *name == "errors")?;
    let about = |paragraph: &&str| {
        let mut lines = paragraph.lines();
        let names = |line: &str| line.split(' ').any(|name| name == code);
        lines.next().is_some_and(names) && lines.next().is_some_and(|line| line.starts_with("  "))
    };
    let paragraph = errors.split("\n\n").find(about).map(|paragraph| format!("{}\n", paragraph.trim_end()));
    paragraph.or_else(|| PROFILES.iter().find_map(|profile| profile.explain(code)))
}

/// The rules of a content type, each with its section in a specification.
struct Profile {
    /// The kind of statement that the rules apply to, such as `VRF statements`.
    of: &'static str,
    document: &'static str,
    /// The remedy in `tabellion help CODE`: a command that checks the rules.
    check: &'static str,
    rules: fn() -> Vec<(&'static str, &'static str)>,
}

/// Creates the function in [`Profile::rules`] for an enum of rules.
macro_rules! listed {
    ($rule:ty) => {
        || <$rule>::ALL.iter().map(|rule| (rule.name(), rule.section())).collect()
    };
}

/// The value of `check` for profiles without a command.
const DRY_RUN: &str = "POST /v1/policy/evaluate returns the decision of the policy, and registers nothing.";
/// Rules of specifications that compare a statement with the log's entries, so that only the log can check them. Rules of
/// our own have the section `log` instead.
const KEPT_BY_LOG: &[&str] = &[
    "aer-id-unique",
    "agentroa-registry-version-unique",
    "vap-audit-decision-required",
    "vap-audit-no-decision",
    "vap-audit-outcome-unique",
    "vap-audit-sequence-unique",
    "vrf-chain-fork",
    "vrf-chain-mismatch",
    "vrf-chain-position-taken",
    "vrf-chain-second-genesis",
    "vrf-chain-unknown-predecessor",
    "vrf-receipt-id-unique",
];

const PROFILES: &[Profile] = &[
    Profile {
        of: "VRF statements",
        document: "draft-clawbizarre-scitt-vrf-00",
        check: "tabellion vrf verify FILE checks every rule without a service.",
        rules: listed!(VrfRule),
    },
    Profile {
        of: "execution receipts",
        document: "draft-nivalto-agentroa-route-authorization-00",
        check: "tabellion execution verify FILE checks every rule without a service.",
        rules: listed!(AerRule),
    },
    Profile {
        of: "registry versions of AgentROA",
        document: "draft-nivalto-agentroa-route-authorization-00",
        check: DRY_RUN,
        rules: listed!(RegistryRule),
    },
    Profile {
        of: "policy documents of AgentROA",
        document: "draft-nivalto-agentroa-route-authorization-00",
        check: DRY_RUN,
        rules: listed!(PolicyDocumentRule),
    },
    Profile {
        of: "delegation chains of AgentROA",
        document: "draft-nivalto-agentroa-route-authorization-00",
        check: DRY_RUN,
        rules: listed!(ChainRule),
    },
    Profile { of: "VAP verdicts", document: "VAP 0.1", check: DRY_RUN, rules: listed!(VerdictRule) },
    Profile {
        of: "a VAP gateway's audit records",
        document: "VAP 0.1",
        check: DRY_RUN,
        rules: listed!(AuditRule),
    },
    Profile { of: "key sets", document: "RFC 7517", check: DRY_RUN, rules: listed!(JwkSetRule) },
    Profile {
        of: "erasures",
        document: "application/vnd.tabellion.erasure+json",
        check: "tabellion entry erase makes erasures that keep the rules.",
        rules: listed!(ErasureRule),
    },
    Profile {
        of: "operators' actions and approvals",
        document: "application/vnd.tabellion.operator-action+json, application/vnd.tabellion.operator-approval+json",
        check: "tabellion log freeze, entry hold, entry release and operator approve make statements that keep the rules; \
                where operators are missing, the others approve: tabellion help policies.",
        rules: listed!(OperatorRule),
    },
    Profile {
        of: "clock corrections",
        document: "application/vnd.tabellion.clock-correction+json",
        check: "tabellion log clock makes corrections that keep the rules.",
        rules: listed!(ClockCorrectionRule),
    },
    Profile {
        of: "heads of the search index",
        document: "application/vnd.tabellion.index-head+cbor",
        check: DRY_RUN,
        rules: listed!(IndexHeadRule),
    },
    Profile {
        of: "conversation records",
        document: "draft-birkholz-verifiable-agent-conversations-00",
        check: "tabellion record verify FILE checks every rule without a service.",
        rules: listed!(ConversationRule),
    },
];

impl Profile {
    /// Returns the text of `help CODE` for one of the rules.
    fn explain(&self, code: &str) -> Option<String> {
        let rules = (self.rules)();
        let (name, section) = rules.iter().find(|(name, _)| *name == code)?;
        let by_log = *section == "log" || KEPT_BY_LOG.contains(name);
        let check = if by_log { DRY_RUN } else { self.check };
        Some(format!(
            "{name}\n  A rule of {}: {}, section {section}. The answer says where it is broken and what was\n  \
             found there.\n  Do: {check}\n",
            self.of, self.document
        ))
    }

    fn list(&self) -> String {
        let rules: String =
            (self.rules)().iter().map(|(name, section)| format!("{name:34}  section {section}\n")).collect();
        format!("== Rules of {}, and where {} has them\n\n{rules}", self.of, self.document)
    }
}

/// Returns the help page of a command.
fn command_help(mut program: clap::Command, words: &[String]) -> Option<String> {
    program.build();
    let found = words.iter().try_fold(&mut program, |command, word| command.find_subcommand_mut(word))?;
    Some(found.render_help().to_string())
}

/// Prints the program's version.
pub fn version(context: &Context) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    context.console.print(&members! { version }, |out| writeln!(out, "tabellion {version}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn a_rule_that_only_the_log_can_check_names_the_dry_run() {
        for rule in KEPT_BY_LOG.iter().chain(&["erasure-predecessor", "operator-freeze-once"]) {
            let page = error_code(rule).unwrap_or_else(|| panic!("{rule} is not a rule"));
            assert!(page.contains(DRY_RUN), "{page}");
        }
        assert!(error_code("vrf-json").unwrap().contains("tabellion vrf verify"));
    }

    /// The code before an error code, in all places that create one. The error code is the next string.
    const MAKERS: &[(&str, &[&str])] = &[
        (
            "services/tabellion/src",
            &["Failure::new(", "(Exit::", "failure(\"", "refused(\"", "Halt::", "PolicyError::"],
        ),
        (
            "services/transparency/src",
            &[
                "Problem::new(",
                "Problem::malformed(",
                "Problem::rejected(",
                "Problem::busy(",
                "titled(",
                "rejected(",
                "StatusCode::",
            ],
        ),
        (
            "services/verification/src",
            &["Problem::new(", "unavailable(", "StatusCode::", "is_client_error() => ", "Code of a job"],
        ),
        ("services/registry-server/src", &["StatusCode::"]),
        ("services/gateway/src/approvals", &["StatusCode::"]),
        ("crates/serving/src", &["Problem::new("]),
        ("crates/registration/src", &["RuleName::fixed(", "broken(", "refused(", "Untrusted::", "VIOLATION"]),
    ];
    /// Maximum distance in bytes between one of [`MAKERS`] and its code.
    const REACH: usize = 120;

    /// Returns the kebab-case strings after a maker in all sources below a folder, except tests.
    fn codes_in(folder: &str, makers: &[&str]) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let mut found = BTreeSet::new();
        for file in sources(&root) {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for maker in makers {
                for (at, _) in text.match_indices(maker) {
                    let end = (at + maker.len() + REACH).min(text.len());
                    let end = (at..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap();
                    let start = at + maker.trim_end_matches('"').len();
                    let after = text[start..end].split(';').next().unwrap();
                    // A code of one word looks like any other string, so it counts only directly after the maker.
                    let at_once = *maker == "Problem::malformed(" && after.trim_start().starts_with('"');
                    let is_code = |word: &&str| is_code(word) || at_once;
                    found.extend(after.split('"').nth(1).filter(is_code).map(str::to_owned));
                }
            }
        }
        found
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if name.ends_with(".rs") && !name.contains("tests") {
                found.push(path);
            }
        }
        found
    }

    fn is_code(word: &str) -> bool {
        word.contains('-')
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
            && !word.starts_with('-')
    }

    #[test]
    fn every_code_that_anything_here_can_say_is_explained() {
        let mut codes: BTreeSet<String> =
            MAKERS.iter().flat_map(|(folder, makers)| codes_in(folder, makers)).collect();
        assert!(codes.len() > 80, "the sources are not read as they should be: {codes:?}");
        codes.extend(verifier::Code::ALL.iter().map(ToString::to_string));
        codes.extend(monitor::AlarmKind::ALL.iter().map(ToString::to_string));
        codes.extend(audit::LogRule::ALL.iter().map(ToString::to_string));
        codes.extend(PROFILES.iter().flat_map(|profile| (profile.rules)()).map(|(name, _)| name.to_owned()));
        let unexplained: Vec<_> = codes.iter().filter(|code| error_code(code).is_none()).collect();
        assert!(unexplained.is_empty(), "topics/errors.txt lacks {unexplained:?}");
    }

    #[test]
    fn no_code_is_explained_twice() {
        let (_, errors) = TOPICS.iter().find(|(name, _)| *name == "errors").unwrap();
        let paragraphs = errors.split("\n\n").filter(|paragraph| paragraph.contains("\n  "));
        let mut seen = BTreeSet::new();
        for code in paragraphs.flat_map(|paragraph| paragraph.lines().next().unwrap().split(' ')) {
            assert!(seen.insert(code), "{code} is explained twice");
        }
    }

    #[test]
    fn a_topic_is_no_code_and_every_topic_has_a_page() {
        for (topic, _) in TOPICS {
            assert!(page(topic).is_some() && error_code(topic).is_none(), "{topic}");
        }
    }
}
