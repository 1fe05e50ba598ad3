//! The receipt about a report (section 4.1), as `registration::vrf` admits it.

use registration::vrf::VERSION;
use serde_json::{Map, Value, json};

use crate::report::{Detail, Report};
use crate::request::CheckRequest;

/// The members of a receipt that do not depend on the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// A new UUID of version 4, in lower case.
    pub receipt_id: String,
    /// The time at which the checks were completed: `YYYY-MM-DDThh:mm:ssZ`.
    pub verified_at: String,
    /// The verification software and its version, such as `tabellion/0.1.0`.
    pub verifier: String,
}

/// Returns the receipt about a request and its report.
#[must_use]
pub fn receipt(request: &CheckRequest, report: &Report, stamp: Stamp) -> Value {
    let mut receipt = json!({
        "vrf_version": VERSION,
        "receipt_id": stamp.receipt_id,
        "verified_at": stamp.verified_at,
        "tier": request.tier(),
        "verdict": report.verdict().as_str(),
        "results": results(report),
        "hashes": hashes(request, report),
        "metadata": {
            "verifier": stamp.verifier,
            "execution_ms": report.execution_ms,
            "sandbox": report.engine.sandbox,
            "structural": true,
            "sandbox_config": sandbox_config(request, report),
        },
    });
    put(&mut receipt, "subject", request.subject().map(Value::from));
    put(&mut receipt, "task", request.task().cloned());
    receipt
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

fn results(report: &Report) -> Value {
    let counts = report.results();
    let details: Vec<Value> = report.details.iter().map(detail).collect();
    json!({
        "total": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.errors,
        "details": details,
    })
}

fn detail(detail: &Detail) -> Value {
    let mut members = json!({ "name": detail.name, "status": detail.status.as_str() });
    put(&mut members, "expected", detail.expected.clone().map(Value::from));
    put(&mut members, "actual", detail.actual.clone().map(Value::from));
    put(&mut members, "message", detail.message.clone().map(Value::from));
    put(&mut members, "elapsed_ms", detail.elapsed_ms.map(Value::from));
    members
}

fn hashes(request: &CheckRequest, report: &Report) -> Value {
    let hashes = request.hashes();
    let mut all: Map<String, Value> =
        report.hashes.iter().map(|(name, hash)| (name.clone(), hash.clone().into())).collect();
    all.insert("output".to_owned(), hashes.output.clone().into());
    all.insert("tests".to_owned(), hashes.tests.clone().into());
    if let Some(specification) = &hashes.specification {
        all.insert("specification".to_owned(), specification.clone().into());
    }
    all.into()
}

/// Returns what a reader needs to do the checks again: engine, limits and seed.
fn sandbox_config(request: &CheckRequest, report: &Report) -> Value {
    let engine = &report.engine;
    let digests: Map<String, Value> =
        engine.digests.iter().map(|(file, digest)| (file.clone(), digest.clone().into())).collect();
    let mut config = json!({
        "engine": engine.name,
        "version": engine.version,
        "digests": digests,
        "limits": request.limits().members(),
    });
    put(&mut config, "fuel_used", report.fuel_used.map(Value::from));
    put(&mut config, "seed", report.seed.clone().map(Value::from));
    put(&mut config, "cases", report.cases.map(Value::from));
    config
}
