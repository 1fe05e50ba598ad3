//! A client that floods the service with hostile work: the others are served, and its work is judged or refused.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use black_box::VerificationProcess;
use black_box::cli::Dev;
use serde_json::{Value, json};

/// Hostile requests that are sent at the same time.
const HOSTILE: usize = 200;

/// Hostile work: its language and its program.
const WORK: &[(&str, &str)] = &[
    ("javascript", "function main() { for (;;) {} }"),
    ("javascript", "function main() { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) }"),
    ("javascript", "function main() { for (;;) console.log('spam') }"),
    ("python", "import os\ndef main():\n    while True:\n        os.fork()\n"),
    ("python", "def main():\n    return len('x' * (1 << 40))\n"),
    ("python", "import time\ndef main():\n    time.sleep(600)\n"),
    ("python", "def main():\n    while True:\n        print('spam' * 1000)\n"),
];

fn hostile(number: usize) -> Value {
    let (language, program) = WORK[number % WORK.len()];
    json!({
        "tier": 0,
        "task": { "task_id": format!("hostile-{number}"), "task_type": "code_generation" },
        "artifact": { "language": language, "content": program },
        "tests": [{ "name": "ends", "expected": 1 }],
        "limits": { "time_ms": 1000, "fuel": 100_000_000, "memory_bytes": 64 << 20, "processes": 4 },
    })
}

fn honest(number: usize) -> Value {
    let (language, program) = match number % 2 {
        0 => ("javascript", "function main(a, b) { return a + b }"),
        _ => ("python", "def main(a, b):\n    return a + b\n"),
    };
    json!({
        "tier": 0,
        "task": { "task_id": format!("honest-{number}"), "task_type": "code_generation" },
        "artifact": { "language": language, "content": program },
        "tests": [{ "name": "adds", "arguments": [2, 3], "expected": 5 }],
    })
}

/// A service with two clients, whose tokens are their names.
fn service_of_two_clients(dev: &Dev) -> VerificationProcess {
    let folder = &dev.folder;
    folder.run(&["issuer", "new", "-o", "verifier.pem", "--alg", "EdDSA"]).must_end_with(0);
    let client = |name: &str| {
        folder.write(&format!("{name}.token"), name);
        format!(
            "[[client]]\nname = \"{name}\"\ntoken_file = \"{name}.token\"\nrequests_per_minute = 100000\n"
        )
    };
    let config = format!(
        "listen = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\nstate = \"verification\"\nkey = \"verifier.pem\"\n\
         workers = 4\nwait = \"20s\"\n[log]\nurl = \"{}\"\n{}{}",
        dev.url(),
        client("hostile"),
        client("honest")
    );
    folder.write("verification.toml", config);
    VerificationProcess::start_configured(folder, "verification.toml")
}

/// Sends the work until it is checked, and returns the verdict.
fn verdict_of_honest(service: &VerificationProcess, number: usize) -> Value {
    loop {
        let answer = service.verify_as("honest", &honest(number)).unwrap();
        match answer.status {
            200 => return answer.json()["verdict"].clone(),
            202 => {}
            _ => panic!("{}", answer.json()),
        }
    }
}

#[test]
fn under_200_parallel_hostile_requests_the_honest_client_is_served_by_both_backends() {
    let dev = Dev::start();
    let service = service_of_two_clients(&dev);
    let (judged, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..HOSTILE {
            let (service, judged, refused) = (&service, &judged, &refused);
            scope.spawn(move || {
                let answer = service.verify_as("hostile", &hostile(number)).unwrap();
                let shown = answer.json();
                match answer.status {
                    200 => assert!(
                        ["fail", "error"].iter().any(|verdict| shown["verdict"] == *verdict),
                        "{shown}"
                    ),
                    202 => {}
                    429 => assert_eq!(shown["code"], "queue-share", "{shown}"),
                    _ => panic!("{shown}"),
                }
                let counter = if answer.status == 429 { refused } else { judged };
                counter.fetch_add(1, Ordering::Relaxed);
            });
        }
        for number in 0..10 {
            let service = &service;
            scope.spawn(move || assert_eq!(verdict_of_honest(service, number), "pass"));
        }
    });
    let (judged, refused) = (judged.into_inner(), refused.into_inner());
    assert_eq!(judged + refused, HOSTILE);
    assert!(judged >= 8 && refused > 0, "{judged} accepted, {refused} refused");
    assert_eq!(verdict_of_honest(&service, 10), "pass", "the service goes on");
}
