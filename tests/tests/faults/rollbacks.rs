//! Databases that go back, or become another, behind a running service: the pin notices before anything is signed, and who
//! watches from outside notices too.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{Log, Looked, Outcome, Recorder, Service, Watch, on_both_databases};
use scitt::{Receipt, SignedStatement};

/// How a monitor ends that found what no log may do.
const MISBEHAVIOUR: i32 = 8;
/// Commits that a replica misses.
const MISSED: usize = 50;
/// How long it may take until a service says that its database is another one. It is asked whether it still can be trusted
/// once a minute; what is handed in meanwhile is refused.
const NOTICED: Duration = Duration::from_secs(180);

on_both_databases! {
    fn r21_r28_a_database_that_goes_back_behind_a_running_service_is_never_signed(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let old = log.statement();
        register(&recorder, &service, &old);
        service.stop();
        let replica = log.database().back_up();
        let service = log.serve();
        for _ in 1..MISSED {
            register(&recorder, &service, &log.statement());
        }
        let lost = log.statement();
        register(&recorder, &service, &lost);
        let before = checkpoint(&service);
        assert_eq!(size_of(&before), 2 + MISSED as u64);
        let watch = watching(&log, &service, None);
        let receipts = watching_receipts(&log, &service, &lost, None);

        log.database().restore(&replica);

        let said = refuses_and_says(&log, &service, &["this log has signed 52", "was replaced", "cannot find"]);
        nothing_new_is_signed(&service, &before, &said);
        reads_go_on(&service, &old);
        service.kill();

        // Nor does a new process, which finds the pin ahead of the database.
        let service = log.serve();
        let said = refuses_and_says(&log, &service, &["the database is at 2, this log has signed 52"]);
        nothing_new_is_signed(&service, &before, &said);
        reads_go_on(&service, &old);
        let watch = watching(&log, &service, Some(watch));
        watch.look().must_accuse(MISBEHAVIOUR, "rollback");
        let receipts = watching_receipts(&log, &service, &lost, Some(receipts));
        lasting(&receipts).must_accuse(MISBEHAVIOUR, "vanished");
        service.stop();
    }

    fn r28_a_database_of_the_same_size_and_another_root_is_never_signed(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let old = log.statement();
        let receipt = register(&recorder, &service, &old);
        service.stop();
        let common = log.database().back_up();
        // One history, whose pin is put aside, and another one as long.
        let service = log.serve();
        register(&recorder, &service, &log.statement());
        service.stop();
        let ours = log.database().back_up();
        copy(&log.path("state"), &log.path("state.ours"));
        log.database().restore(&common);
        fs::remove_dir_all(log.path("state")).unwrap();
        let root = receipt.implied_root(&old.digest().leaf_hash()).unwrap().to_string();
        log.tabellion(&["log", "adopt", "--size", "2", "--root", &root]).must_succeed();
        let service = log.serve();
        register(&Recorder::new(), &service, &log.statement());
        service.stop();
        let other = log.database().back_up();

        log.database().restore(&ours);
        fs::remove_dir_all(log.path("state")).unwrap();
        copy(&log.path("state.ours"), &log.path("state"));
        let service = log.serve();
        let before = checkpoint(&service);
        assert_eq!(size_of(&before), 3);
        let watch = watching(&log, &service, None);
        let receipts = watching_receipts(&log, &service, &old, None);
        log.database().restore(&other);

        let said = refuses_and_says(&log, &service, &["this log has signed root", "was replaced", "cannot find"]);
        nothing_new_is_signed(&service, &before, &said);
        reads_go_on(&service, &old);
        service.kill();
        let service = log.serve();
        let said = refuses_and_says(&log, &service, &["this log has signed root"]);
        reads_go_on(&service, &old);
        // What the other history shows was signed by the same key: that is for who watches to say.
        let watch = watching(&log, &service, Some(watch));
        let looked = watch.look();
        looked.must_accuse(MISBEHAVIOUR, "fork");
        let receipts = watching_receipts(&log, &service, &old, Some(receipts));
        let by_receipts = receipts.look();
        by_receipts.must_accuse(MISBEHAVIOUR, "fork");
        service.stop();
        let shown = watch.convinces(&looked.evidence(), &["--key", &log.vkey()]);
        assert_eq!(shown.code, Some(MISBEHAVIOUR), "with every server dead: {shown} {said}");
        let shown = receipts.convinces(&by_receipts.evidence(), &[]);
        assert_eq!(shown.code, Some(4), "whose keys they are, nobody has checked: {shown}");
        let trust = receipts.path("trust.toml");
        let shown = receipts.convinces(&by_receipts.evidence(), &["--trust", trust.to_str().unwrap()]);
        assert_eq!(shown.code, Some(MISBEHAVIOUR), "two receipts alone: {shown}");
    }
}

/// A monitor that has seen what the log shows now; or the same one, for the service's next address.
#[track_caller]
fn watching(log: &Log, service: &Service, before: Option<Watch>) -> Watch {
    let (url, vkey) = (service.url(), log.vkey());
    begun(&format!("[[log]]\nname = \"log\"\nurl = \"{url}/\"\nvkey = \"{vkey}\"\n"), before)
}

/// Looks until something is wrong: what a replica that is behind could do too is an accusation only when it lasts.
fn lasting(watch: &Watch) -> Looked {
    let begun = Instant::now();
    loop {
        let looked = watch.look();
        if looked.code() == Some(MISBEHAVIOUR) || begun.elapsed() > Duration::from_secs(60) {
            return looked;
        }
        sleep(Duration::from_millis(300));
    }
}

/// The same of the log as any SCITT service: by the receipts that it gives for an entry.
#[track_caller]
fn watching_receipts(log: &Log, service: &Service, entry: &SignedStatement, before: Option<Watch>) -> Watch {
    let shown = log.tabellion(&["key", "show", "--json"]).must_succeed().json();
    let key = shown["receipt"]["did_key"].as_str().unwrap();
    let watch = before.unwrap_or_else(|| Watch::new(""));
    let trust = format!("[[log]]\niss = \"{}\"\nkeys = [\"{key}\"]\n", testkit::LOG_ISS);
    fs::write(watch.path("trust.toml"), trust).unwrap();
    let (url, entry) = (service.url(), entry.digest());
    let config = format!(
        "[[service]]\nname = \"service\"\nurl = \"{url}/\"\ntrust = \"trust.toml\"\nentries = [\"{entry}\"]\nlag = \"1s\"\n"
    );
    watch.configure(&config);
    if !watch.path("state").exists() {
        watch.look().must_be_well();
    }
    watch
}

#[track_caller]
fn begun(config: &str, before: Option<Watch>) -> Watch {
    if let Some(watch) = before {
        watch.configure(config);
        return watch;
    }
    let watch = Watch::new(config);
    watch.look().must_be_well();
    watch
}

#[track_caller]
fn register(recorder: &Recorder, service: &Service, statement: &SignedStatement) -> Receipt {
    let mut connection = service.connection();
    assert_eq!(recorder.register(&mut connection, statement), Outcome::Registered);
    Receipt::parse(connection.get(&format!("/entries/{}", statement.digest())).body).unwrap()
}

/// Writes are refused from the first one on, and soon the service says why, in one of these words.
#[track_caller]
fn refuses_and_says(log: &Log, service: &Service, words: &[&str]) -> String {
    let begun = Instant::now();
    loop {
        let answer = service.connection().post(log.statement().bytes());
        assert!(!matches!(answer.status, 200 | 201), "signed: {answer:?}");
        let ready = service.admin().get("/readyz");
        let said = format!("{}\n{}", String::from_utf8_lossy(&ready.body), service.said());
        if ready.status == 503 && words.iter().any(|word| said.contains(word)) {
            return said;
        }
        assert!(begun.elapsed() < NOTICED, "{}: {said}", ready.status);
        sleep(Duration::from_millis(100));
    }
}

/// What is shown, if anything, was signed before.
#[track_caller]
fn nothing_new_is_signed(service: &Service, before: &str, said: &str) {
    let shown = service.connection().get("/checkpoint");
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    match shown.status {
        200 if text.lines().take(3).eq(before.lines().take(3)) => {}
        200 => assert!(size_of(&text) < size_of(before), "{text} and {before}: {said}"),
        status => assert!(status == 404 || status == 503, "{shown:?}"),
    }
}

#[track_caller]
fn reads_go_on(service: &Service, old: &SignedStatement) {
    let receipt = service.connection().get(&format!("/entries/{}", old.digest()));
    assert_eq!(receipt.status, 200, "{receipt:?}");
}

#[track_caller]
fn checkpoint(service: &Service) -> String {
    let shown = service.connection().get("/checkpoint");
    assert_eq!(shown.status, 200, "{shown:?}");
    String::from_utf8(shown.body).unwrap()
}

fn size_of(checkpoint: &str) -> u64 {
    checkpoint.lines().nth(1).unwrap().parse().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        if file.path().is_file() {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
}
