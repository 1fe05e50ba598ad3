//! Commits whose answer is lost, processes that are cut off, and two that want the same.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use evidence::contract::{Stream, record, refused};
use evidence::{Change, CommitError, EvidenceStore, Horizon, Instances, Outbox, Pruned, StoreError, Upkeep};
use evidence_postgres::testing::Database;
use evidence_postgres::{Options, Postgres};

/// As long as a commit may take here before nobody knows. On a busy machine, others succeed within it.
const SHORT: Duration = Duration::from_secs(4);
const WRITER: &str = "tabellion evidence writer";

async fn impatient(database: &Database, instance: &str) -> Arc<Postgres> {
    let options = Options::from_url(database.url()).unwrap().with_commit_timeout(SHORT);
    Arc::new(Postgres::connect(&options, instance).await.unwrap())
}

async fn is_kept(database: &Database, stream: &str, seq: u64) -> bool {
    let id = record(stream, seq).id;
    database.ask(&format!("SELECT EXISTS (SELECT FROM record WHERE id = '\\x{id}')::text")).await == "true"
}

/// Until a session of that name waits for a lock.
async fn until_it_waits(database: &Database, name: &str) {
    let query = format!(
        "SELECT count(*)::text FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = '{name}' AND wait_event_type = 'Lock'"
    );
    for _ in 0..600 {
        if database.ask(&query).await != "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody waits for a lock");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_in_doubt_until_it_has_ended() {
    let database = Database::fresh().await;
    let store = impatient(&database, "one").await;
    let mut stream = Stream::new("s");
    stream.grow(&*store, 1).await;
    let change = [stream.change(1)];
    let holder = database.hold("SELECT 1 FROM stream FOR UPDATE").await;
    let outcome = store.commit(&change).await;
    assert!(matches!(outcome, Err(CommitError::MayHaveHappened(_))), "{outcome:?}");
    let asked = tokio::spawn({
        let (store, change) = (Arc::clone(&store), change.clone());
        async move { store.happened(&change).await }
    });
    until_it_waits(&database, "tabellion evidence doubter").await;
    assert!(!asked.is_finished(), "the commit in doubt still runs");
    holder.commit().await;
    let happened = asked.await.unwrap().unwrap();
    assert_eq!(happened, is_kept(&database, "s", 1).await);
    if !happened {
        store.commit(&change).await.unwrap();
    }
    assert!(store.happened(&change).await.unwrap());
    stream.grow(&*store, 1).await;
    assert_eq!(store.backlog().await.unwrap().records, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_killed_in_a_commit_leaves_nothing_half_done() {
    let database = Database::fresh().await;
    let store = Arc::new(database.store("one").await);
    let mut stream = Stream::new("s");
    stream.grow(&*store, 1).await;
    let change = [stream.change(2)];
    let holder = database.hold("SELECT 1 FROM stream FOR UPDATE").await;
    let sent = tokio::spawn({
        let (store, change) = (Arc::clone(&store), change.clone());
        async move { store.commit(&change).await }
    });
    until_it_waits(&database, WRITER).await;
    database.end_sessions(WRITER).await;
    let outcome = sent.await.unwrap();
    assert!(matches!(outcome, Err(CommitError::MayHaveHappened(_))), "{outcome:?}");
    holder.commit().await;
    assert!(!store.happened(&change).await.unwrap());
    assert!(!is_kept(&database, "s", 1).await);
    store.commit(&change).await.unwrap();
    assert_eq!(store.backlog().await.unwrap().records, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_died_between_commits_costs_a_question_and_no_change() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let mut stream = Stream::new("s");
    for _ in 0..3 {
        stream.grow(&store, 1).await;
        database.end_sessions("tabellion evidence%").await;
        let change = [stream.change(1)];
        match store.commit(&change).await {
            Ok(()) => {}
            Err(CommitError::MayHaveHappened(_)) => {
                assert!(!store.happened(&change).await.unwrap());
                store.commit(&change).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
    assert_eq!((kept.version, kept.next_seq), (6, 6));
}

/// What was sent before the question and reaches the server after the answer.
#[tokio::test]
async fn a_commit_that_arrives_after_it_was_said_not_to_have_happened_is_kept_out() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let mut stream = Stream::new("s");
    stream.grow(&store, 1).await;
    let change = [stream.change(1)];
    assert!(!store.happened(&change).await.unwrap());
    let late = database
        .try_run(
            "SELECT commit_group(no, 0, '{s}', '{1}', '{2}', '{1}', '{0}', '{f}', '{5}', '{x}', '{NULL}',
                                 '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')
               FROM instance WHERE name = 'one'",
        )
        .await;
    assert!(late.unwrap_err().to_string().contains("asked meanwhile"));
    store.commit(&change).await.unwrap();
}

/// Locks are taken in one order, so nobody waits for ever and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_over_the_same_streams_in_any_order_wait_for_each_other_and_not_for_ever() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    const EACH: usize = 12;
    let database = Database::fresh().await;
    let mut workers = Vec::new();
    for n in 0..4 {
        let store = database.store(&format!("instance {n}")).await;
        workers.push(tokio::spawn(async move {
            for turn in 0..EACH {
                move_all(&store, n + turn).await;
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let store = database.store("last").await;
    for kept in store.streams(&NAMES).await.unwrap() {
        assert_eq!(kept.unwrap().version, 4 * EACH as u64);
    }

    async fn move_all(store: &Postgres, from: usize) {
        loop {
            let kept = store.streams(&NAMES).await.unwrap();
            let changes: Vec<Change> = (0..NAMES.len())
                .map(|index| (from + index * 3) % NAMES.len())
                .map(|index| Change {
                    from: kept[index].as_ref().map(|kept| kept.version),
                    ..Stream::new(NAMES[index]).change(0)
                })
                .collect();
            match store.commit(&changes).await {
                Ok(()) => return,
                Err(CommitError::Conflict(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn a_name_is_one_runs_alone() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    for name in ["one", "", "a\0b"] {
        let outcome = Postgres::connect(&database.options(), name).await;
        assert!(matches!(outcome, Err(StoreError::Refused(_))), "{name:?}: {outcome:?}");
    }
    store.leave().await.unwrap();
    let outcome = Postgres::connect(&database.options(), "one").await;
    assert!(matches!(outcome, Err(StoreError::Refused(_))), "its records bear the name");
}

#[tokio::test]
async fn an_instance_that_is_long_gone_is_forgotten_and_what_it_counted_is_not() {
    let database = Database::fresh().await;
    let (one, other) = (database.store("one").await, database.store("other").await);
    let ids = Stream::new("s").grow(&one, 5).await;
    let deliver = |id| evidence::Delivered { id, leaf_index: None, receipt: None };
    other.delivered(&ids.into_iter().take(4).map(deliver).collect::<Vec<_>>()).await.unwrap();
    let horizon = Horizon { streams: 0, records: 0 };
    let instances = async || database.ask("SELECT count(*)::text FROM instance").await;
    let before = other.backlog().await.unwrap();
    assert_eq!(before.records, 1);
    database.run("UPDATE instance SET until = now() - interval '2 days' WHERE name = 'one'").await;
    other.prune(horizon, 10).await.unwrap();
    assert_eq!(instances().await, "2", "something of it waits");
    let last = other.pending(10).await.unwrap().remove(0).id;
    other.delivered(&[deliver(last)]).await.unwrap();
    other.prune(horizon, 10).await.unwrap();
    assert_eq!(instances().await, "1");
    assert_eq!(other.backlog().await.unwrap(), evidence::Backlog::default());
}

/// As after the machine was suspended for days.
#[tokio::test]
async fn an_instance_that_was_forgotten_is_registered_again_by_what_it_does_next() {
    for next in ["a renewal", "a question", "a commit"] {
        let database = Database::fresh().await;
        let (one, other) = (database.store("one").await, database.store("other").await);
        let registered = async || {
            let registered = "SELECT count(*)::text FROM instance WHERE name = 'one' AND until > now()";
            database.ask(registered).await
        };
        database.run("UPDATE instance SET until = now() - interval '2 days' WHERE name = 'one'").await;
        other.prune(Horizon { streams: 0, records: 0 }, 10).await.unwrap();
        assert_eq!(registered().await, "0");
        let mut stream = Stream::new("s");
        let change = [stream.change(1)];
        let deliver = evidence::Delivered { id: record("s", 0).id, leaf_index: None, receipt: None };
        let delivered = one.delivered(&[deliver]).await;
        assert!(matches!(delivered, Err(StoreError::Unavailable(_))), "nothing is counted: {delivered:?}");
        match next {
            "a renewal" => assert!(one.renew(SHORT).await.unwrap().is_some()),
            "a question" => assert!(!one.happened(&change).await.unwrap()),
            _ => one.commit(&change).await.unwrap(),
        }
        assert_eq!(registered().await, "1", "{next}");
        if next != "a commit" {
            one.commit(&change).await.unwrap();
        }
        stream.grow(&one, 1).await;
        assert_eq!(one.pending(10).await.unwrap().len(), 2, "{next}");
        assert_eq!(other.backlog().await.unwrap().records, 2, "{next}");
    }
}

/// A server that raises the epoch and whose answer is lost.
#[tokio::test]
async fn a_question_without_an_answer_does_not_end_the_commits_of_an_instance() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let mut stream = Stream::new("s");
    stream.grow(&store, 1).await;
    database.run("UPDATE instance SET epoch = epoch + 1 WHERE name = 'one'").await;
    stream.grow(&store, 1).await;
}

/// As two instances do that send the records of a third one, whose lease is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_another_instance_delivers_meanwhile_is_not_set_aside() {
    let database = Database::fresh().await;
    let (one, other) = (Arc::new(database.store("one").await), database.store("other").await);
    let id = Stream::new("s").grow(&*one, 1).await.remove(0);
    let deliver = format!(
        "SELECT deliver(no, ARRAY['\\x{id}'::bytea], ARRAY[7]::bigint[], ARRAY[NULL]::bytea[])
           FROM instance WHERE name = 'other'"
    );
    let holder = database.hold(&deliver).await;
    let marked = tokio::spawn({
        let one = Arc::clone(&one);
        async move { one.stuck(&[refused(id)]).await }
    });
    until_it_waits(&database, "tabellion evidence reader").await;
    holder.commit().await;
    marked.await.unwrap().unwrap();
    assert_eq!(other.stuck_records(10).await.unwrap(), []);
    assert_eq!(other.backlog().await.unwrap(), evidence::Backlog::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_another_instance_sets_aside_meanwhile_is_delivered() {
    let database = Database::fresh().await;
    let (one, other) = (Arc::new(database.store("one").await), database.store("other").await);
    let id = Stream::new("s").grow(&*one, 1).await.remove(0);
    let set_aside = format!(
        "SELECT set_aside(no, ARRAY['\\x{id}'::bytea], ARRAY['why']) FROM instance WHERE name = 'other'"
    );
    let holder = database.hold(&set_aside).await;
    let delivered = tokio::spawn({
        let one = Arc::clone(&one);
        let deliver = evidence::Delivered { id, leaf_index: None, receipt: None };
        async move { one.delivered(&[deliver]).await }
    });
    until_it_waits(&database, "tabellion evidence courier").await;
    holder.commit().await;
    delivered.await.unwrap().unwrap();
    assert_eq!(other.stuck_records(10).await.unwrap(), []);
    assert_eq!(other.backlog().await.unwrap(), evidence::Backlog::default());
}

#[tokio::test]
async fn a_process_whose_clock_is_ahead_ends_and_removes_nothing_before_its_time() {
    const HOUR: u64 = 3_600;
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let now: u64 =
        database.ask("SELECT extract(epoch FROM now())::bigint::text").await.parse().expect("a number");
    let (mut busy, mut used, mut old) = (Stream::new("busy"), Stream::new("used"), Stream::new("old"));
    let claim = used.claim("proof");
    let mut recorded = old.change(1);
    recorded.records[0].at = now;
    let deliver = evidence::Delivered { id: recorded.records[0].id, leaf_index: None, receipt: None };
    store
        .commit(&[
            Change { keep_until: Some(now + HOUR), ..busy.change(0) },
            Change {
                keep_until: Some(now + HOUR),
                closed: true,
                claims: vec![claim.clone()],
                ..used.change(0)
            },
            Change { keep_until: Some(now + HOUR), ..recorded },
        ])
        .await
        .unwrap();
    store.delivered(&[deliver]).await.unwrap();

    let day_ahead = now + 24 * HOUR;
    let horizon = Horizon { streams: day_ahead, records: day_ahead - HOUR };
    assert!(store.due(day_ahead, 10).await.unwrap().is_empty());
    assert_eq!(store.prune(horizon, 10).await.unwrap(), Pruned::default());
    assert_eq!(store.claimed(&[claim]).await.unwrap(), [true]);

    // What is over by both clocks goes.
    for change in [
        Change { keep_until: Some(now - HOUR), ..busy.change(0) },
        Change { keep_until: Some(now - HOUR), closed: true, ..used.change(0) },
    ] {
        store.commit(&[change]).await.unwrap();
    }
    let due = store.due(day_ahead, 10).await.unwrap();
    assert_eq!(due.iter().map(|listed| listed.stream.as_str()).collect::<Vec<_>>(), ["busy"]);
    assert_eq!(store.prune(horizon, 10).await.unwrap(), Pruned { streams: 1, records: 0 });
}

#[tokio::test]
async fn a_renewed_lease_comes_with_the_time_of_the_server() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let now = async || -> u64 {
        let seconds = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint::text";
        database.ask(seconds).await.parse().expect("a number")
    };
    let before = now().await;
    let renewed = store.renew(SHORT).await.unwrap().expect("the server has a clock").as_secs();
    assert!((before..=now().await).contains(&renewed), "{before}: {renewed}");
}

#[tokio::test]
async fn a_server_that_would_forget_a_commit_is_refused() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    store.check_durability().await.unwrap();
    database.alter("SET synchronous_commit = off").await;
    match store.check_durability().await {
        Err(StoreError::Refused(text)) => assert!(text.contains("synchronous_commit"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// A session keeps the settings with which it began.
#[tokio::test]
async fn a_commit_is_refused_until_the_server_would_keep_it() {
    for (setting, value) in [("synchronous_commit", "off"), ("default_transaction_read_only", "on")] {
        let database = Database::fresh().await;
        let store = database.store("one").await;
        let change = [Stream::new("s").change(1)];
        database.alter(&format!("SET {setting} = {value}")).await;
        for _ in 0..2 {
            let outcome = store.commit(&change).await;
            let unavailable = matches!(outcome, Err(CommitError::Failed(StoreError::Unavailable(_))));
            assert!(unavailable, "{setting}: {outcome:?}");
        }
        database.alter(&format!("RESET {setting}")).await;
        store.commit(&change).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_nothing_happened() {
    let options = Options::from_url("postgres://nobody@127.0.0.1:1/nothing").unwrap();
    let outcome = Postgres::connect(&options, "one").await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert!(matches!(Options::from_url("no URL"), Err(StoreError::Refused(_))));
}
