//! The report as one HTML page: no script, and no request to any other address.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{CheckResult, ConformanceReport};

/// The stylesheet, which is part of the page.
const STYLE: &str = include_str!("style.css");
/// The page may load nothing and run nothing; only its own stylesheet applies.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

impl ConformanceReport {
    /// Renders the report as a page. All texts are escaped.
    pub fn to_html(&self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Conformance of " (self.service) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Conformance of " code { (self.service) } }
                    (self.outcome())
                    table {
                        caption { "Checks against SCRAPI-11, RFC 9942, RFC 9943, RFC 9290 and RFC 9110" }
                        thead {
                            tr {
                                @for heading in ["Check", "Source", "Level", "Expectation", "Result", "Finding"] {
                                    th scope="col" { (heading) }
                                }
                            }
                        }
                        tbody { @for check in &self.checks { (row(check)) } }
                    }
                }
            }
        }
        .into_string()
    }

    fn outcome(&self) -> Markup {
        let summary = &self.summary;
        html! {
            p.outcome {
                @if self.conforms && summary.not_selected > 0 { "No MUST of the selected checks is violated." }
                @else if self.conforms { "No MUST is violated." }
                @else if let Some(why) = self.undecided { strong { "No MUST is violated, but " (why) "." } }
                @else { strong { "At least one MUST is violated." } }
            }
            p {
                (summary.passed) " passed, " (summary.failed) " failed, " (summary.warning) " warnings, "
                (summary.not_applicable) " not applicable, " (summary.unsupported) " unsupported"
                @if summary.not_selected > 0 { ", " (summary.not_selected) " not selected" }
                ". Run at " time datetime=(self.at) { (self.at) } "."
            }
        }
    }
}

fn row(check: &CheckResult) -> Markup {
    html! {
        tr class=(check.conclusion.name()) {
            th scope="row" { code { (check.name) } }
            td { (check.source) }
            td { (check.level.name()) }
            td { (check.expectation) }
            td.result { (check.conclusion.name()) }
            td { (check.finding) }
        }
    }
}
