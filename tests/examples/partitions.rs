//! Two hosts that serve one log, and cables that break between them, their clients, the database and the database of the pins
//! (R32, R33, R35): nothing that was answered is lost, nothing forks, and the log registers again once the cable is mended.
//!
//! ```text
//! cargo run -p black-box --example partitions        # as root: each host is a network namespace
//! ```
//!
//! Ends with a panic at the first broken promise.

use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{
    Break, Cable, Cluster, Database, Host, Load, Log, Network, Outcome, Recorder, Service,
    resolve_what_was_left_open, seed, sql,
};

/// How long the other host may take to lead: the server gives up on a silent holder of the lease after 10 s, and a transaction
/// that it left open after 5 s more.
const TAKE_OVER: Duration = Duration::from_secs(60);
/// How soon after a cable is mended both hosts must register again (I14).
const HEALED: Duration = Duration::from_secs(30);

/// A way to break cables of one host.
struct Fault {
    cables: &'static [Cable],
    how: Break,
    /// How long; `None`: until the other host leads.
    lasting: Option<u64>,
    /// How often, with as much time between.
    times: u32,
}

const FAULTS: &[Fault] = &[
    Fault { cables: &[Cable::Database], how: Break::BothWays, lasting: None, times: 1 },
    Fault { cables: &[Cable::Database, Cable::Pins], how: Break::BothWays, lasting: None, times: 1 },
    Fault { cables: &[Cable::Database], how: Break::Inwards, lasting: None, times: 1 },
    Fault { cables: &[Cable::Database], how: Break::Outwards, lasting: None, times: 1 },
    Fault { cables: &[Cable::Pins], how: Break::BothWays, lasting: Some(8), times: 1 },
    Fault { cables: &[Cable::Pins], how: Break::Inwards, lasting: Some(8), times: 1 },
    Fault { cables: &[Cable::Database], how: Break::BothWays, lasting: Some(2), times: 4 },
    Fault { cables: &[Cable::Clients], how: Break::BothWays, lasting: Some(4), times: 1 },
    Fault { cables: &[Cable::Clients], how: Break::Outwards, lasting: Some(4), times: 1 },
    Fault { cables: &[Cable::Database, Cable::Pins], how: Break::Slow, lasting: Some(10), times: 1 },
];

fn main() {
    let network = Network::enter();
    seed();
    let (database, pins) = (server_at(Cable::Database.far_end()), server_at(Cable::Pins.far_end()));
    let log = Log::on(Database::Postgres(database.1));
    log.configure(&format!("plaintext = true\npin = \"{}\"", pins.1));
    let hosts = [network.host(1), network.host(2)];
    let services = hosts.each_ref().map(|host| start(&log, host));
    let recorder = Recorder::new();
    let load = Load { log: &log, recorder: &recorder, writers: 6 };
    for fault in FAULTS {
        let leader = leader(&services);
        let (host, other) = (&hosts[leader], &services[1 - leader]);
        load.on_several(&[&services[0], &services[1]], || {
            sleep(Duration::from_millis(fastrand::u64(300..1300)));
            for _ in 0..fault.times {
                fault.cables.iter().for_each(|cable| host.cut(*cable, fault.how));
                match fault.lasting {
                    Some(seconds) => sleep(Duration::from_secs(seconds)),
                    None => until(TAKE_OVER, || leads(other), &|| format!("no take-over: {}", other.said())),
                }
                fault.cables.iter().for_each(|cable| host.mend(*cable, fault.how));
                sleep(Duration::from_secs(if fault.times > 1 { fault.lasting.unwrap_or(0) } else { 0 }));
            }
        });
        for service in &services {
            let mut connection = service.connection();
            let registers = || recorder.register(&mut connection, &log.statement()) == Outcome::Registered;
            until(HEALED, registers, &|| format!("it does not register again: {}", service.said()));
        }
        resolve_what_was_left_open(&recorder, &services[0]);
        recorder.must_have_kept_its_word(&services[0]);
        recorder.must_have_kept_its_word(&services[1]);
    }
    let [first, second] = services;
    first.stop();
    recorder.verdict(&log, second);
}

/// A server that the hosts can reach, and its URL for them.
fn server_at(address: Ipv4Addr) -> (Cluster, String) {
    let cluster = Cluster::start(&[&format!("listen_addresses=127.0.0.1,{address}")]);
    let allowed = cluster.data().join("pg_hba.conf");
    let rules = std::fs::read_to_string(&allowed).expect("the server's file");
    std::fs::write(&allowed, format!("{rules}host all all 10.99.0.0/16 scram-sha-256\n"))
        .expect("the server's file");
    sql(cluster.url(), "SELECT pg_reload_conf()");
    let url = cluster.url().replace("127.0.0.1", &address.to_string());
    (cluster, url)
}

fn start(log: &Log, host: &Host) -> Service {
    host.serve(log).unwrap_or_else(|ran| panic!("the service did not start: {ran}"))
}

/// The place of the service that leads.
fn leader(services: &[Service; 2]) -> usize {
    let mut found = None;
    let look = || {
        found = services.iter().position(leads);
        found.is_some()
    };
    until(HEALED, look, &|| format!("nobody leads: {}\n{}", services[0].said(), services[1].said()));
    found.unwrap_or_default()
}

fn leads(service: &Service) -> bool {
    service.metric("tabellion_storage_fence_epoch") > 0.0
}

fn until(patience: Duration, mut holds: impl FnMut() -> bool, otherwise: &dyn Fn() -> String) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience, "{}", otherwise());
        sleep(Duration::from_millis(50));
    }
}
