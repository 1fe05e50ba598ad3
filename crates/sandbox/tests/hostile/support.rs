//! Jobs, canaries and the loop over tables of guests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use std::{fs, thread};

use sandbox::{Call, Ending, Job, Language, Limits, Outcome, Sandbox};
use tempfile::TempDir;

/// What a guest must not learn.
const SECRET: &str = "the canary's secret";

/// A guest of a table: its name, its program, and the beginnings of the descriptions ([`describe`]) that its outcome may have.
pub type Row = (&'static str, &'static str, &'static [&'static str]);

pub const LIMITS: Limits = Limits {
    fuel: 300_000_000,
    memory: 48 << 20,
    output: 20_000,
    processes: 8,
    time: Duration::from_secs(60),
};

pub fn function(language: Language, program: &str, arguments: &str) -> Job {
    let file = match language {
        Language::JavaScript => "main.js",
        Language::Python => "main.py",
    };
    Job {
        files: BTreeMap::from([(file.to_owned(), program.as_bytes().to_vec())]),
        call: Call::Function {
            language,
            file: file.to_owned(),
            function: "main".to_owned(),
            arguments: arguments.to_owned(),
        },
        limits: LIMITS,
    }
}

pub fn honest(language: Language) -> Job {
    match language {
        Language::JavaScript => function(language, "function main(a, b) { return a + b }", "[2,3]"),
        Language::Python => function(language, "def main(a, b):\n    return a + b", "[2,3]"),
    }
}

/// Returns the outcome in one line: `returned JSON`, `returned nothing`, `threw TEXT`, `not loaded TEXT`,
/// `not json TEXT`, `exited CODE`, `crashed NAME`,
/// or the bound that the guest reached.
pub fn describe(outcome: &Outcome) -> String {
    match (&outcome.ending, &outcome.value) {
        (Ending::Finished, Some(value)) => format!("returned {value}"),
        (Ending::Finished, None) => "returned nothing".to_owned(),
        (Ending::Threw(text), _) => format!("threw {text}"),
        (Ending::NotLoaded(text), _) => format!("not loaded {text}"),
        (Ending::NotJson(text), _) => format!("not json {text}"),
        (Ending::Exited(code), _) => format!("exited {code}"),
        (Ending::Crashed(name), _) => format!("crashed {name}"),
        (Ending::OutOfFuel, _) => "out of fuel".to_owned(),
        (Ending::OutOfMemory, _) => "out of memory".to_owned(),
        (Ending::OutOfTime, _) => "out of time".to_owned(),
        (Ending::TooMuchOutput, _) => "too much output".to_owned(),
    }
}

pub fn assert_honest(sandbox: &dyn Sandbox, language: Language) {
    let outcome = sandbox.run(&honest(language)).expect("the sandbox works");
    assert_eq!(describe(&outcome), "returned 5", "{}", String::from_utf8_lossy(&outcome.stderr));
}

/// A file and a listener that guests try to reach.
pub struct Canary {
    folder: TempDir,
    listener: TcpListener,
}

impl Canary {
    /// The file is readable and writable for everyone, so that only the sandbox protects it.
    pub fn new() -> Self {
        let folder = TempDir::with_prefix_in("canary", "/tmp").expect("a folder");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener that does not wait");
        let canary = Self { folder, listener };
        fs::write(canary.file(), SECRET).expect("the file is written");
        fs::set_permissions(canary.folder.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
        fs::set_permissions(canary.file(), fs::Permissions::from_mode(0o666)).expect("permissions");
        canary
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    /// Writes the canary's path and port into a program, where it says `@FILE@` and `@PORT@`.
    pub fn point_to(&self, program: &str) -> String {
        let port = self.listener.local_addr().expect("an address").port();
        program.replace("@FILE@", &self.file().to_string_lossy()).replace("@PORT@", &port.to_string())
    }

    pub fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(self.file()).expect("the file is there"), SECRET);
        assert_eq!(
            fs::read_dir(self.folder.path()).expect("the folder is there").count(),
            1,
            "a guest made a file"
        );
        assert_eq!(
            self.listener.accept().map(drop).map_err(|error| error.kind()),
            Err(ErrorKind::WouldBlock)
        );
    }
}

/// Runs each guest of a table with this wall time, and an honest job after it. Reports all guests that ended otherwise than expected.
pub fn assert_each(
    sandbox: &dyn Sandbox,
    language: Language,
    rows: &[Row],
    time: Duration,
    assert_honest: impl Fn() + Sync,
) {
    let canary = Canary::new();
    let (queue, wrong) = (Mutex::new(rows.iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().expect("the queue").next();
    let work = || {
        while let Some((name, program, expected)) = next() {
            let mut job = function(language, &canary.point_to(program), "[]");
            job.limits.time = time;
            let outcome = sandbox.run(&job).expect("the sandbox works");
            let described = describe(&outcome);
            if !expected.iter().any(|beginning| described.starts_with(beginning)) || reveals_secret(&outcome)
            {
                wrong.lock().expect("the list").push(format!("{name}: {described}, expected {expected:?}"));
            }
            assert_honest();
        }
    };
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    canary.assert_untouched();
    let wrong = wrong.into_inner().expect("the list");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn reveals_secret(outcome: &Outcome) -> bool {
    let value = outcome.value.as_deref().unwrap_or_default().as_bytes();
    let contains = |text: &[u8]| text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    [value, &outcome.stdout, &outcome.stderr].into_iter().any(contains)
}

/// Runs 200 hostile jobs at the same time, and honest ones among them, which all succeed.
pub fn assert_honest_jobs_are_served(sandbox: &dyn Sandbox, hostile: &[Job], language: Language) {
    thread::scope(|scope| {
        for number in 0..200 {
            let job = &hostile[number % hostile.len()];
            scope.spawn(move || {
                let outcome = sandbox.run(job).expect("the sandbox works");
                assert_ne!(outcome.ending, Ending::Finished, "{job:?}");
            });
        }
        for _ in 0..5 {
            scope.spawn(|| assert_honest(sandbox, language));
        }
    });
}
