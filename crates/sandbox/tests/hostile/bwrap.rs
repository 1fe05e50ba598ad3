//! The backend for programs of Linux.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use sandbox::{Bwrap, Call, Ending, Job, Language, Outcome, Sandbox};

use crate::python_guests::{ENDLESS, GUESTS};
use crate::support::{LIMITS, assert_each, assert_honest_jobs_are_served, describe, function};
use crate::system_calls::{CALLER, CALLS};

static BWRAP: LazyLock<Bwrap> =
    LazyLock::new(|| Bwrap::new().expect("bubblewrap is installed (tools/sandbox-tools)"));

/// Wall time of guests that do not end by themselves.
const SHORT: Duration = Duration::from_millis(1500);

#[test]
fn hostile_functions_end_as_expected_and_reach_nothing() {
    assert_each(&*BWRAP, Language::Python, GUESTS, LIMITS.time, assert_honest);
}

#[test]
fn endless_functions_are_stopped() {
    assert_each(&*BWRAP, Language::Python, ENDLESS, SHORT, assert_honest);
}

/// An honest job that takes less time than Python needs to start.
fn assert_honest() {
    let outcome = run(&shell("read a; echo $((a + 3))", b"2\n"));
    assert_eq!((&outcome.ending, &outcome.stdout[..]), (&Ending::Finished, &b"5\n"[..]), "{outcome:?}");
}

#[test]
fn dangerous_system_calls_do_not_exist() {
    for (name, number, arguments) in CALLS {
        let numbers = serde_json::json!([&[*number], *arguments].concat()).to_string();
        let outcome = BWRAP.run(&function(Language::Python, CALLER, &numbers)).expect("the sandbox works");
        assert_eq!(describe(&outcome), r#"returned "ENOSYS""#, "{name}");
    }
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    if std::env::var_os("HOSTILE_AS_NOBODY").is_some() || !am_root() {
        return; // then the other tests are about an ordinary user
    }
    for test in ["hostile_functions_end_as_expected_and_reach_nothing", "the_self_test_passes"] {
        let ran = Command::new("/proc/self/exe") // the file itself may be in a folder that the user cannot enter
            .args(["--exact", &format!("bwrap::{test}")])
            .env("HOSTILE_AS_NOBODY", "yes")
            .current_dir("/")
            .uid(65534)
            .gid(65534)
            .output()
            .expect("the test starts");
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && printed.contains("1 passed"), "{printed}");
    }
}

fn am_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn the_self_test_passes() {
    BWRAP.self_test().expect("bubblewrap isolates");
}

#[test]
fn a_bubblewrap_that_is_missing_is_refused_with_a_remedy() {
    let missing = Bwrap::with_program(Path::new("/nowhere/bwrap")).err().map(|error| error.to_string());
    assert_eq!(
        missing.as_deref(),
        Some(
            "the sandbox does not isolate: /nowhere/bwrap is missing or does not start: install the package bubblewrap"
        )
    );
}

/// Options of bubblewrap, each with the number of its arguments and what the self-test says without it.
const NEEDED: &[(&str, usize, &str)] = &[
    ("--seccomp", 1, "the probe ended with Exited(255): "),
    ("--remount-ro", 1, "missing: /job/escaped read-only"),
];

#[test]
fn a_bubblewrap_without_one_restriction_fails_the_self_test() {
    for (option, arguments, missing) in NEEDED {
        let wrapper = fake_bubblewrap(&format!(
            "kept=()\nwhile [ $# -gt 0 ]; do\n  [ \"$1\" = {option} ] && shift {} && continue\n  kept+=(\"$1\"); shift\ndone\nexec /usr/bin/bwrap \"${{kept[@]}}\"",
            arguments + 1,
        ));
        let bwrap = Bwrap::with_program(&wrapper.path().join("bwrap")).expect("it starts");
        let refused = bwrap.self_test().err().map(|error| error.to_string());
        assert_eq!(refused, Some(format!("the sandbox does not isolate: {missing}")), "{option}");
    }
}

fn fake_bubblewrap(script: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::TempDir::with_prefix_in("fake", "/tmp").expect("a folder");
    let program = folder.path().join("bwrap");
    std::fs::write(&program, format!("#!/bin/bash\n[ \"$1\" = --version ] && exec echo fake 1\n{script}\n"))
        .expect("written");
    for path in [folder.path(), &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    folder
}

#[test]
fn a_bubblewrap_that_was_replaced_runs_nothing() {
    let wrapper = fake_bubblewrap("exec /usr/bin/bwrap \"$@\"");
    let program = wrapper.path().join("bwrap");
    let bwrap = Bwrap::with_program(&program).expect("it starts");
    assert_eq!(bwrap.run(&shell("exit 3", b"")).expect("it runs").ending, Ending::Exited(3));
    let other = program.with_extension("new");
    std::fs::copy(&program, &other).expect("a copy");
    std::fs::rename(&other, &program).expect("the copy takes its place");
    let refused = bwrap.run(&shell("exit 3", b"")).err().map(|error| error.to_string());
    assert_eq!(refused, Some(format!("{} has changed since this process started", program.display())));
}

#[test]
fn the_kernel_kills_a_guest_before_other_processes_if_memory_is_short() {
    let wrapper = fake_bubblewrap("exec cat /proc/self/oom_score_adj >&2");
    let bwrap = Bwrap::with_program(&wrapper.path().join("bwrap")).expect("it starts");
    let failed = bwrap.run(&function(Language::Python, "", "[]")).err().map(|error| error.to_string());
    assert_eq!(failed.as_deref(), Some("the sandbox failed: bubblewrap: 1000"));
}

#[test]
fn honest_jobs_are_served_among_two_hundred_hostile_ones() {
    let scripts = [
        "while :; do :; done",
        "bomb() { bomb | bomb & }; bomb; while :; do :; done",
        "while :; do echo spam spam spam spam spam spam spam; done",
        "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done",
        "exec 0<&- 1>&- 2>&-; sleep 1000",
        "kill -SEGV $$",
    ];
    let hostile = scripts.map(|script| {
        let mut job = shell(script, b"");
        job.limits.time = SHORT;
        job
    });
    assert_honest_jobs_are_served(&*BWRAP, &hostile, Language::Python);
}

#[test]
fn a_guest_does_not_get_descriptors_that_the_service_inherited() {
    let secret = std::fs::File::open("/proc/self/environ").expect("a file outside");
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty())
        .expect("a descriptor that programs inherit");
    let reader = "import os
def main():
    found = []
    for fd in range(4, 256):
        try: found.append(os.read(fd, 10).decode())
        except OSError: pass
    return ''.join(found)";

    assert_eq!(describe(&run(&function(Language::Python, reader, "[]"))), r#"returned """#);
}

#[test]
fn functions_get_arguments_and_return_values() {
    let echo = "import sys\nprint('to standard output')\nprint('to standard error', file=sys.stderr)\ndef main(*all): return all";
    let outcome = run(&function(Language::Python, echo, r#"[1, 2.5, "ü", null, {"a": [true]}]"#));

    assert_eq!(describe(&outcome), r#"returned [1,2.5,"\u00fc",null,{"a":[true]}]"#);
    assert_eq!(outcome.stdout, b"to standard output\n");
    assert_eq!(outcome.stderr, b"to standard error\n");
}

#[test]
fn files_of_a_job_import_each_other() {
    let mut job =
        function(Language::Python, "from lib.sums import add\ndef main(a, b): return add(a, b)", "[2,3]");
    job.files.insert("lib/sums.py".to_owned(), b"def add(a, b): return a + b".to_vec());

    assert_eq!(describe(&run(&job)), "returned 5");
}

#[test]
fn sets_and_random_numbers_are_the_same_on_every_run() {
    let program = "import random\ndef main(): return [list({'a', 'b', 'c', 'd'}), random.random()]";
    let first = run(&function(Language::Python, program, "[]"));

    assert!(matches!(first.ending, Ending::Finished), "{first:?}");
    assert_eq!(run(&function(Language::Python, program, "[]")).value, first.value);
}

#[test]
fn a_function_that_is_missing_is_named() {
    assert_eq!(
        describe(&run(&function(Language::Python, "", "[]"))),
        "not loaded LookupError: 'main.py' has no function 'main'"
    );
    assert_eq!(
        describe(&run(&function(Language::Python, "def main(:", "[]")))[..23],
        *"not loaded SyntaxError:"
    );
}

#[test]
fn programs_of_a_job_read_standard_input_and_write_standard_output() {
    let outcome = run(&shell("tr a-z A-Z; echo problem >&2; exit 3", b"hello"));

    assert_eq!(
        (outcome.ending, &outcome.stdout[..], &outcome.stderr[..]),
        (Ending::Exited(3), &b"HELLO"[..], &b"problem\n"[..])
    );
}

#[test]
fn what_a_program_prints_about_memory_does_not_change_how_it_ended() {
    for (script, ending) in [
        ("echo Cannot allocate memory; exit 1", Ending::Exited(1)),
        ("echo MemoryError >&2; kill -KILL $$", Ending::Crashed("SIGKILL".to_owned())),
    ] {
        assert_eq!(run(&shell(script, b"")).ending, ending);
    }
}

#[test]
fn a_program_cannot_end_as_if_its_wall_time_or_output_were_used_up() {
    for (script, signal) in [
        ("exit 152", "SIGXCPU"),
        ("kill -XCPU $$", "SIGXCPU"),
        ("exit 153", "SIGXFSZ"),
        ("exec truncate -s 1T /tmp/big", "SIGXFSZ"),
    ] {
        assert_eq!(run(&shell(script, b"")).ending, Ending::Crashed(signal.to_owned()), "{script}");
    }
}

#[test]
fn a_program_that_does_not_read_its_input_does_not_block() {
    let outcome = run(&shell("exec 0<&-; echo done", &vec![b'x'; 1 << 20]));

    assert_eq!((outcome.ending, &outcome.stdout[..]), (Ending::Finished, &b"done\n"[..]));
}

#[test]
fn large_input_and_output_pass_at_the_same_time() {
    let mut job = shell("cat", &vec![b'x'; 4 << 20]);
    job.limits.output = 4 << 20;
    let outcome = run(&job);

    assert_eq!((outcome.ending, outcome.stdout.len()), (Ending::Finished, 4 << 20));
}

#[test]
fn output_at_the_bound_is_allowed_and_one_byte_more_is_not() {
    let mut job = shell("printf 12345", b"");
    job.limits.output = 5;
    assert_eq!(run(&job).ending, Ending::Finished);

    job.limits.output = 4;
    let outcome = run(&job);
    assert_eq!((outcome.ending, &outcome.stdout[..]), (Ending::TooMuchOutput, &b"1234"[..]));
}

#[test]
fn solvers_read_an_obligation_from_a_file() {
    let obligation = b"(set-logic QF_LIA)(declare-const x Int)(assert (and (> x 1) (< x 2)))(check-sat)";
    for solver in [&["z3", "/job/goal.smt2"][..], &["cvc5", "/job/goal.smt2"]] {
        let mut job = program(solver, b"");
        job.limits.memory = 512 << 20;
        job.files.insert("goal.smt2".to_owned(), obligation.to_vec());
        let outcome = run(&job);
        assert_eq!(
            (&outcome.ending, &outcome.stdout[..]),
            (&Ending::Finished, &b"unsat\n"[..]),
            "{solver:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_solver_that_exhausts_its_memory_says_so() {
    let goal = b"(declare-const x Int)(assert (> x 1))(check-sat)";
    let outcome = run(&program(&["z3", "-smt2", "-in", "-memory:1"], goal));
    assert!(matches!(outcome.ending, Ending::Exited(_)), "{outcome:?}");
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("out of memory"), "{outcome:?}");
}

#[test]
fn a_file_of_the_job_does_not_replace_a_solver() {
    let mut job = program(&["z3", "--version"], b"");
    job.files.insert("z3".to_owned(), b"#!/bin/sh\necho fake".to_vec());

    assert!(run(&job).stdout.starts_with(b"Z3 version"));
}

#[test]
fn jobs_that_cannot_be_run_are_refused() {
    let refused = |job: &Job| BWRAP.run(job).expect_err("a refusal").to_string();

    assert_eq!(refused(&program(&["./absent"], b"")), "the sandbox failed: the job has no file \"absent\"");
    assert_eq!(
        refused(&program(&[], b"")),
        "this sandbox cannot run the program \"\": it is not in /usr/bin"
    );
    assert_eq!(
        refused(&function(Language::JavaScript, "", "[]")),
        "this sandbox cannot run JavaScript functions"
    );
    let mut outside = shell("", b"");
    outside.files.insert("../outside".to_owned(), Vec::new());
    assert_eq!(refused(&outside), "the sandbox failed: the file \"../outside\" has no plain relative path");
}

#[test]
fn the_engine_names_versions_and_digests() {
    let engine = BWRAP.engine();

    assert_eq!(engine.sandbox, "subprocess");
    assert!(engine.version.starts_with("bubblewrap "), "{}", engine.version);
    for name in ["bwrap", "python3", "z3", "cvc5", "driver.py", "seccomp filter"] {
        assert!(
            engine.digests.iter().any(|(file, digest)| file == name && digest.starts_with("sha256:")),
            "{name}"
        );
    }
}

fn run(job: &Job) -> Outcome {
    BWRAP.run(job).expect("the sandbox works")
}

fn shell(script: &str, stdin: &[u8]) -> Job {
    let mut job = program(&["./main.sh"], stdin);
    job.files.insert("main.sh".to_owned(), format!("#!/bin/sh\n{script}\n").into_bytes());
    job
}

fn program(command: &[&str], stdin: &[u8]) -> Job {
    Job {
        files: BTreeMap::new(),
        call: Call::Program {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            stdin: stdin.to_vec(),
        },
        limits: LIMITS,
    }
}
