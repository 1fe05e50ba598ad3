//! Records made at random: good ones, and ones with a change or two.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use testkit::conversation_json;

fn timestamp() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("2026-02-01T12:00:00Z")),
        Just(json!("2026-02-30T23:59:60.5+01:00")),
        (100_000_000_000_u64..2_000_000_000_000).prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(""), Just("a"), Just("naïve 🦀")].prop_map(Value::from)
}

/// Something that an open map may hold, or that takes a member's place.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1_700_000_000_000_u64)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("noon")),
        Just(json!("2026-13-01T12:00:00Z")),
        Just(json!([])),
        Just(json!(["a"])),
        Just(json!({})),
        Just(json!({ "type": "user" })),
        Just(json!([{ "type": "nothing" }])),
    ]
}

/// A map of these members, each of the optional ones there or not.
fn map(
    required: Vec<(&'static str, BoxedStrategy<Value>)>,
    optional: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let member = |(name, value): (&'static str, BoxedStrategy<Value>), always: bool| {
        (if always { Just(true).boxed() } else { any::<bool>().boxed() }, value)
            .prop_map(move |(there, value)| there.then(|| (name.to_owned(), value)))
            .boxed()
    };
    let required = required.into_iter().map(|it| member(it, true));
    let optional = optional.into_iter().map(|it| member(it, false));
    let members: Vec<_> = required.chain(optional).collect();
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect())).boxed()
}

fn list(of: BoxedStrategy<Value>, most: usize) -> BoxedStrategy<Value> {
    proptest::collection::vec(of, 0..=most).prop_map(Value::from).boxed()
}

fn entry(children: Option<BoxedStrategy<Value>>) -> BoxedStrategy<Value> {
    let common = || {
        let mut members =
            vec![("timestamp", timestamp().boxed()), ("id", text().boxed()), ("x", anything().boxed())];
        members.extend(children.clone().map(|entry| ("children", list(entry, 1))));
        members
    };
    let kind = |name: &'static str| ("type", Just(json!(name)).boxed());
    let with = |more: Vec<(&'static str, BoxedStrategy<Value>)>| [more, common()].concat();
    let usage = map(
        vec![],
        vec![("input", (0..9u64).prop_map(Value::from).boxed()), ("cost", Just(json!(0.5)).boxed())],
    );
    prop_oneof![
        map(
            vec![("type", prop_oneof![Just(json!("user")), Just(json!("assistant"))].boxed())],
            with(vec![
                ("content", anything().boxed()),
                ("model-id", text().boxed()),
                ("parent-id", text().boxed()),
                ("token-usage", usage)
            ])
        ),
        map(
            vec![kind("tool-call"), ("name", text().boxed()), ("input", anything().boxed())],
            with(vec![("call-id", text().boxed())])
        ),
        map(
            vec![kind("tool-result"), ("output", anything().boxed())],
            with(vec![
                ("call-id", text().boxed()),
                ("status", text().boxed()),
                ("is-error", Just(json!(true)).boxed())
            ])
        ),
        map(
            vec![kind("reasoning"), ("content", anything().boxed())],
            with(vec![("encrypted", text().boxed()), ("subject", text().boxed())])
        ),
        map(
            vec![kind("system-event"), ("event-type", text().boxed())],
            with(vec![("data", Just(json!({ "a": 1 })).boxed())])
        ),
    ]
    .boxed()
}

fn file() -> BoxedStrategy<Value> {
    let contributor = || map(vec![("type", Just(json!("ai")).boxed())], vec![("model-id", text().boxed())]);
    let line = || (1..9u64).prop_map(Value::from).boxed();
    let range = map(
        vec![("start-line", line()), ("end-line", line())],
        vec![
            ("content-hash", text().boxed()),
            ("content-hash-alg", text().boxed()),
            ("contributor", contributor()),
        ],
    );
    let resource = map(vec![("type", text().boxed()), ("url", text().boxed())], vec![]);
    let conversation = map(
        vec![("ranges", list(range, 2))],
        vec![("url", text().boxed()), ("contributor", contributor()), ("related", list(resource, 1))],
    );
    map(vec![("path", text().boxed()), ("conversations", list(conversation, 1))], vec![])
}

fn record() -> BoxedStrategy<Value> {
    let vcs = || {
        map(vec![("type", text().boxed())], vec![("revision", text().boxed()), ("branch", text().boxed())])
    };
    let agent = map(
        vec![("model-id", text().boxed()), ("model-provider", text().boxed())],
        vec![("models", list(text().boxed(), 2)), ("cli-name", text().boxed()), ("x", anything().boxed())],
    );
    let environment = map(
        vec![("working-dir", text().boxed())],
        vec![("vcs", vcs()), ("sandboxes", list(text().boxed(), 1))],
    );
    let session = map(
        vec![
            ("session-id", text().boxed()),
            ("agent-meta", agent),
            ("entries", list(entry(Some(entry(None))), 3)),
        ],
        vec![
            ("format", text().boxed()),
            ("session-start", timestamp().boxed()),
            ("session-end", timestamp().boxed()),
            ("environment", environment),
        ],
    );
    map(
        vec![("version", text().boxed()), ("id", text().boxed()), ("session", session)],
        vec![
            ("created", timestamp().boxed()),
            ("file-attribution", map(vec![("files", list(file(), 2))], vec![])),
            ("vcs", vcs()),
            ("recording-agent", map(vec![("name", text().boxed())], vec![("version", text().boxed())])),
            ("x", anything().boxed()),
        ],
    )
}

/// One value somewhere in a record removed, replaced or added to.
#[derive(Clone, Debug)]
enum Change {
    Remove(usize),
    Replace(usize, Value),
    Add(usize, Value),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Remove),
        (any::<usize>(), anything()).prop_map(|(at, value)| Change::Replace(at, value)),
        (any::<usize>(), anything()).prop_map(|(at, value)| Change::Add(at, value)),
    ]
}

/// Pointers to every value but the record itself.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, item)| (format!("{at}/{i}"), item)).collect()
        }
        Value::Object(members) => members.iter().map(|(name, item)| (format!("{at}/{name}"), item)).collect(),
        _ => Vec::new(),
    };
    for (pointer, value) in inner {
        pointers(value, &pointer, found);
        found.push(pointer);
    }
}

fn apply(record: &mut Value, change: &Change) {
    let mut places = Vec::new();
    pointers(record, "", &mut places);
    let place = |at: usize| places[at % places.len()].clone();
    match change {
        Change::Replace(at, value) => *record.pointer_mut(&place(*at)).unwrap() = value.clone(),
        Change::Remove(at) => {
            let place = place(*at);
            let (parent, name) = place.rsplit_once('/').unwrap();
            match record.pointer_mut(parent).unwrap() {
                Value::Object(members) => drop(members.remove(name)),
                Value::Array(items) => drop(items.remove(name.parse().unwrap())),
                _ => {}
            }
        }
        Change::Add(at, value) => match record.pointer_mut(&place(*at)).unwrap() {
            Value::Object(members) => drop(members.insert("added".to_owned(), value.clone())),
            Value::Array(items) => items.push(value.clone()),
            _ => {}
        },
    }
}

/// The same records on every run.
pub fn records(count: u32) -> Vec<Value> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (record(), proptest::collection::vec(change(), 0..3)).prop_map(|(mut record, changes)| {
        changes.iter().for_each(|change| apply(&mut record, change));
        record
    });
    let made = (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    [conversation_json(0)].into_iter().chain(made).collect()
}
