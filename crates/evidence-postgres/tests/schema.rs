//! The schema: made, shared, and what it refuses.
#![allow(clippy::unwrap_used)]

use evidence::contract::Stream;
use evidence::{EvidenceStore, Outbox, StoreError};
use evidence_postgres::Postgres;
use evidence_postgres::testing::Database;

#[tokio::test]
async fn a_database_without_a_schema_is_refused_until_it_is_made() {
    let database = Database::empty().await;
    let options = database.options();
    match Postgres::connect(&options, "one").await {
        Err(StoreError::Refused(text)) => assert!(text.contains("migrate it first"), "{text}"),
        other => panic!("{other:?}"),
    }
    Postgres::migrate(&options).await.unwrap();
    Postgres::migrate(&options).await.unwrap();
    Postgres::connect(&options, "one").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_make_the_schema_at_once_all_find_it_made() {
    let database = Database::empty().await;
    let mut makers = Vec::new();
    for _ in 0..4 {
        let options = database.options();
        makers.push(tokio::spawn(async move { Postgres::migrate(&options).await }));
    }
    for maker in makers {
        maker.await.unwrap().unwrap();
    }
    database.store("one").await;
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_refused() {
    let database = Database::fresh().await;
    database
        .run(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'newer', true, '', 1)",
        )
        .await;
    for outcome in [
        Postgres::migrate(&database.options()).await,
        Postgres::connect(&database.options(), "one").await.map(drop),
    ] {
        match outcome {
            Err(StoreError::Refused(text)) => assert!(text.contains("newer program"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A small site has one database for its log and its gateways.
#[tokio::test]
async fn a_log_may_be_in_the_same_database() {
    let database = store_postgres::testing::Database::fresh().await;
    let options = evidence_postgres::Options::from_url(database.url()).unwrap();
    Postgres::migrate(&options).await.unwrap();
    let store = Postgres::connect(&options, "one").await.unwrap();
    Stream::new("s").grow(&store, 2).await;
    store_postgres::Postgres::migrate(&database.options()).await.unwrap();
    database.store().await;
    assert_eq!(store.backlog().await.unwrap().records, 2);
}

#[tokio::test]
async fn the_tables_refuse_what_the_promise_rules_out() {
    let database = Database::fresh().await;
    let store = database.store("one").await;
    let mut stream = Stream::new("s");
    store.commit(&[stream.serve().1]).await.unwrap();
    for statement in [
        "UPDATE record SET statement = ''",
        "UPDATE record SET seq = 5",
        "DELETE FROM record",
        "TRUNCATE record CASCADE",
        "DELETE FROM outbox",
        "DELETE FROM stream",
        "DELETE FROM instance",
        "UPDATE stream SET version = version",
        "UPDATE stream SET version = version + 1, next_seq = 0",
        "UPDATE stream SET version = version + 1, name = 'other'",
    ] {
        assert!(database.try_run(statement).await.is_err(), "{statement}");
    }
    assert_eq!(store.records("s", 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.pending(10).await.unwrap().len(), 1);
}

/// The plans are those of full tables from the first day on.
#[tokio::test]
async fn what_is_asked_with_every_call_reads_indexes_only() {
    let database = Database::fresh().await;
    for query in [
        "SELECT s.version FROM stream s LEFT JOIN agreement a ON a.stream = s.no WHERE s.name = ANY ('{a,b}')",
        "SELECT o.record FROM (SELECT no FROM instance WHERE no = 1 OR until <= now()) AS i
          CROSS JOIN LATERAL (SELECT record FROM outbox
                               WHERE instance = i.no AND at > 0 ORDER BY record LIMIT 5) AS o",
        "SELECT o.record FROM (SELECT no FROM instance WHERE no = 1 OR until <= now()) AS i
          CROSS JOIN LATERAL (SELECT record FROM outbox
                               WHERE instance = i.no AND at = 0 ORDER BY record LIMIT 5) AS o",
        "SELECT o.record FROM instance i
          CROSS JOIN LATERAL (SELECT record FROM open_decision WHERE instance = i.no ORDER BY record LIMIT 5) AS o",
        "SELECT at FROM outbox ORDER BY record LIMIT 1",
        "SELECT name FROM stream WHERE NOT closed AND keep_until <= 5 ORDER BY keep_until, name LIMIT 5",
    ] {
        let plan = database.plan(query).await;
        for table in ["stream", "agreement", "outbox", "open_decision"] {
            assert!(!plan.contains(&format!("Seq Scan on {table}")), "{query}: {plan}");
        }
        assert!(!plan.contains("Sort") || query.contains("CROSS JOIN"), "{query}: {plan}");
        assert_eq!(plan.contains("outbox_retried"), query.contains("at = 0"), "{query}: {plan}");
    }
}
