//! Schedules and heads.

use data_encoding::HEXLOWER;
use lookup_tree::{HeadRun, IndexHead, RunId, RunSummary, schedule};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};
use serde_json::{Value, json};

use super::Cases;
use crate::support::agents_in_turn;

pub fn schedules() -> Cases {
    let case = |why: &str, size: u64| {
        let run = |run: &lookup_tree::ScheduledRun| {
            let [start, end] = [run.leaves.start, run.leaves.end].map(LeafIndex::get);
            json!({ "level": run.id.level, "number": run.id.number, "leaves": [start, end] })
        };
        let runs: Vec<Value> = schedule(TreeSize::new(size)).iter().map(run).collect();
        json!({ "why": why, "size": size, "runs": runs })
    };
    Cases::from([
        ("empty", case("no leaves, no runs", 0)),
        ("tail-only", case("less than a run of level 0", 4_095)),
        ("one-run", case("a run of level 0 serves once it is full, and the tail is empty", 4_096)),
        ("not-merged-yet", case("a run of level 1 is full at 32,768, and serves later", 36_863)),
        ("merged", case("a run of level 1 serves L/8 leaves after its end", 36_864)),
        ("merged-and-tail", case("three lengths", 40_000)),
        ("two-merged", case("two runs of level 1 and two of level 0", 73_728)),
        ("level-2", case("a run of level 2 serves", 294_912)),
        ("hundred-million", case("a large log", 100_000_000)),
        ("largest", case("a size of all bits", u64::MAX)),
    ])
}

pub fn heads() -> Cases {
    let tail = sound();
    let bytes = tail.encode();
    let other_runs = |runs: Vec<HeadRun>| IndexHead { runs, ..tail.clone() }.encode();
    let run = |id| HeadRun { id, ..tail.runs[0] };
    let replaced = |from: &str, to: &str| {
        let hex = HEXLOWER.encode(&bytes);
        assert!(hex.contains(from));
        HEXLOWER.decode(hex.replacen(from, to, 1).as_bytes()).unwrap()
    };
    let two = IndexHead {
        size: TreeSize::new(4_100),
        runs: vec![run(RunId { level: 0, number: 0 }), run(RunId::TAIL)],
        ..tail.clone()
    };
    Cases::from([
        (
            "forty",
            case("accept", "agent-(i mod 5) at leaf i, i < 40; series and root of the log are zero", &bytes),
        ),
        (
            "empty",
            case(
                "accept",
                "an index of no leaves",
                &IndexHead { size: TreeSize::new(0), runs: vec![], ..tail.clone() }.encode(),
            ),
        ),
        ("two-runs", case("accept", "a run and the tail", &two.encode())),
        (
            "horizon",
            case(
                "accept",
                "erased by statements before leaf 30",
                &IndexHead { horizon: LeafIndex::new(30), ..tail.clone() }.encode(),
            ),
        ),
        ("no-tail", case("wrong-runs", "the newest leaves are in no run", &other_runs(vec![]))),
        (
            "run-for-tail",
            case(
                "wrong-runs",
                "a run before it is full",
                &other_runs(vec![run(RunId { level: 0, number: 0 })]),
            ),
        ),
        (
            "tail-twice",
            case("wrong-runs", "a run that is not in the schedule", &other_runs(vec![run(RunId::TAIL); 2])),
        ),
        (
            "tail-number",
            case(
                "wrong-runs",
                "the tail has number 0",
                &other_runs(vec![run(RunId { level: 255, number: 1 })]),
            ),
        ),
        ("cut", case("malformed", "the last byte is missing", &bytes[..bytes.len() - 1])),
        ("trailing-byte", case("malformed", "a byte after the head", &[&bytes[..], &[0]].concat())),
        (
            "long-integer",
            case("malformed", "a number that is not in its shortest form", &replaced("021828", "02190028")),
        ),
        (
            "indefinite-length",
            case(
                "malformed",
                "an array of indefinite length",
                &[&replaced("0581", "059f")[..], &[0xff]].concat(),
            ),
        ),
        (
            "unknown-member",
            case("malformed", "a sixth member", &[&replaced("a501", "a601")[..], &[6, 0]].concat()),
        ),
        (
            "missing-member",
            case(
                "malformed",
                "no horizon",
                &replaced("0400", "")
                    .iter()
                    .enumerate()
                    .map(|(at, byte)| if at == 0 { 0xa4 } else { *byte })
                    .collect::<Vec<_>>(),
            ),
        ),
        (
            "member-order",
            case("malformed", "members are in the order of their labels", &replaced("02182803", "03182802")),
        ),
        ("level", case("malformed", "a level beyond 8 bits", &replaced("8518ff", "85190100"))),
        ("negative", case("malformed", "a negative horizon", &replaced("0400", "0420"))),
        (
            "run-of-four",
            case(
                "malformed",
                "a run without its blind postings",
                &replaced("8518ff00182800", "8418ff001828"),
            ),
        ),
    ])
}

/// The head that the description publishes.
pub fn sound() -> IndexHead {
    let summary = RunSummary::of(&agents_in_turn(0, 40, 5)).unwrap();
    IndexHead {
        series: Hash::from_bytes([0; 32]),
        size: TreeSize::new(40),
        log_root: RootHash::from_bytes([0; 32]),
        horizon: LeafIndex::new(0),
        runs: vec![HeadRun { id: RunId::TAIL, summary }],
    }
}

fn case(expected: &str, why: &str, bytes: &[u8]) -> Value {
    let head = IndexHead::decode(bytes).ok();
    let decided = match head.as_ref().map(IndexHead::scheduled_runs) {
        None => "malformed",
        Some(Err(_)) => "wrong-runs",
        Some(Ok(_)) => "accept",
    };
    assert_eq!(decided, expected, "{why}");
    let contents = head.map(|head| {
        let run = |run: &HeadRun| {
            json!({
                "level": run.id.level,
                "number": run.id.number,
                "postings": run.summary.postings,
                "blind": run.summary.blind,
                "root": run.summary.root.to_string(),
            })
        };
        json!({
            "series": head.series.to_string(),
            "size": head.size.get(),
            "log_root": head.log_root.to_string(),
            "horizon": head.horizon.get(),
            "runs": head.runs.iter().map(run).collect::<Vec<_>>(),
            "digest": head.digest().to_string(),
        })
    });
    json!({ "why": why, "head": HEXLOWER.encode(bytes), "expected": expected, "contents": contents })
}
