//! Requests that no client would send, over a bare socket. Whatever comes, the service answers or hangs up, in bounded
//! time and memory, and the next client is served.
//!
//! Known limit of the service: what hyper refuses by itself has a status and no problem body.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use black_box::http::all_answers;
use black_box::{Answer, Connection, Log, Service};

/// A head must arrive within 10 s, a body within 30 s.
const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(30);
/// What hanging up may add to that.
const GRACE: Duration = Duration::from_secs(5);
/// Hanging connections at once.
const HANGERS: usize = 50;
/// Connections that hang up half-way through a body.
const CUTTERS: usize = 300;

fn post_head(more: &str) -> String {
    format!("POST /entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/cose\r\n{more}\r\n")
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

/// The last thing each test does: somebody else is served.
fn still_serves(log: &Log, service: Service) {
    assert_eq!(service.connection().post(log.statement().bytes()).status, 201);
    service.stop();
    log.must_be_sound();
}

#[test]
fn heads_of_any_size_are_refused_and_bounded() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    for size in [33 << 10, 120 << 10, 200 << 10, 4 << 20, 64 << 20] {
        let head =
            [b"GET / HTTP/1.1\r\nHost: x\r\nX-Large: ".to_vec(), vec![b'a'; size], b"\r\n\r\n".to_vec()]
                .concat();
        let answers = connection.raw(&head);
        assert!(statuses(&answers).iter().all(|status| *status == 431), "{size}: {answers:?}");
        if size < 128 << 10 {
            assert_eq!(answers[0].refusal(), (431, "Request Header Fields Too Large".to_owned()));
        }
    }
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let answers =
        connection.raw(format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{many}\r\n").as_bytes());
    assert_eq!(answers[0].refusal(), (431, "Request Header Fields Too Large".to_owned()));
    assert!(service.memory() < 256 << 20);
    still_serves(&log, service);
}

#[test]
fn slow_heads_and_slow_bodies_are_given_up_and_do_not_keep_others_waiting() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let (log, connection) = (&log, &connection);
    let hanging = &AtomicUsize::new(2 * HANGERS);
    scope(|scope| {
        for _ in 0..HANGERS {
            scope.spawn(move || {
                hang(connection, hanging, "GET /entries HTTP/1.1\r\nX-Slow: ", HEAD_TIME, &[])
            });
        }
        for _ in 0..HANGERS {
            scope.spawn(move || {
                hang(connection, hanging, &post_head("Content-Length: 100\r\n"), BODY_TIME, &[408])
            });
        }
        scope.spawn(move || {
            let mut client = Connection::to(connection.address());
            for _ in 0..20 {
                assert_eq!(client.post(log.statement().bytes()).status, 201);
            }
            assert!(hanging.load(Ordering::SeqCst) > 0, "all of it while others were slow");
        });
    });
    still_serves(log, service);
}

/// Sends a byte a second and waits until it is told, or hung up on.
fn hang(connection: &Connection, hanging: &AtomicUsize, start: &str, limit: Duration, expected: &[u16]) {
    let mut stream = connection.connect().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.write_all(start.as_bytes()).unwrap();
    let begun = Instant::now();
    let mut heard = Vec::new();
    loop {
        assert!(begun.elapsed() < limit + GRACE, "still there after {:?}", begun.elapsed());
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => heard.extend_from_slice(&buffer[..length]),
            Err(why)
                if matches!(why.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if stream.write_all(b"a").is_err() {
            break;
        }
    }
    hanging.fetch_sub(1, Ordering::SeqCst);
    assert!(begun.elapsed() > limit / 2, "given up too early: {:?}", begun.elapsed());
    for status in expected {
        let said = String::from_utf8_lossy(&heard);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said:?}");
    }
}

#[test]
fn bodies_that_end_early_change_nothing() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let statement = log.statement();
    let bytes = statement.bytes();
    for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let head = post_head(&format!("Content-Length: {}\r\n", bytes.len()));
        let answers = connection.raw_and_no_more(&[head.as_bytes(), &bytes[..cut]].concat());
        assert!(statuses(&answers).iter().all(|status| *status == 400), "{cut}: {answers:?}");
    }
    for _ in 0..CUTTERS {
        let mut stream = connection.connect().unwrap();
        let head = post_head("Content-Length: 1000000\r\n");
        stream.write_all(&[head.as_bytes(), &vec![0; 10_000]].concat()).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(service.connection().get(&format!("/entries/{}", statement.digest())).status, 404);
    assert!(service.memory() < 256 << 20);
    still_serves(&log, service);
}

#[test]
fn chunks_are_bodies_like_others_and_nonsense_in_them_is_refused() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let chunked = post_head("Transfer-Encoding: chunked\r\nConnection: close\r\n");
    let statement = log.statement();
    let mut whole = chunked.clone().into_bytes();
    for byte in statement.bytes().chunks(7) {
        whole.extend([format!("{:x};note=x\r\n", byte.len()).as_bytes(), byte, b"\r\n"].concat());
    }
    whole.extend(b"0\r\nTrailer: x\r\n\r\n");
    assert_eq!(statuses(&connection.raw(&whole)), [201]);
    for nonsense in [
        "zz\r\nhello\r\n0\r\n\r\n",
        "-1\r\nhello\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\nhello\r\n",
        "5\r\nhelloworld\r\n0\r\n\r\n",
        "5\r\nhe",
    ] {
        let answers = connection.raw_and_no_more(&[chunked.as_bytes(), nonsense.as_bytes()].concat());
        assert!(statuses(&answers).iter().all(|status| *status == 400), "{nonsense:?}: {answers:?}");
    }
    let large =
        [chunked.as_bytes(), &b"800000\r\n"[..], &vec![0; 8 << 20], b"\r\n1\r\n0\r\n0\r\n\r\n"].concat();
    assert_eq!(statuses(&connection.raw(&large)), [413]);
    still_serves(&log, service);
}

#[test]
fn a_request_cannot_be_smuggled_behind_another() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    for ambiguous in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length : 5\r\n",
    ] {
        let body = "0\r\n\r\nGET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n";
        let answers = connection.raw(format!("{}{body}", post_head(ambiguous)).as_bytes());
        let refused =
            answers.first().is_none_or(|answer| (400..500).contains(&answer.status) || answer.status == 501);
        assert!(refused, "{ambiguous:?}: {answers:?}");
        assert!(!statuses(&answers).contains(&200), "{ambiguous:?}: smuggled");
    }
    still_serves(&log, service);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let log = Log::sqlite();
    let service = log.serve();
    let statement = log.statement();
    let post = [
        post_head(&format!("Content-Length: {}\r\n", statement.bytes().len())).as_bytes(),
        statement.bytes(),
    ]
    .concat();
    let get = format!("GET /entries/{} HTTP/1.1\r\nHost: x\r\n\r\n", statement.digest());
    let unknown = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let last = b"GET /v1/limits HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answers = service.connection().raw(&[&post, get.as_bytes(), unknown, &post, last].concat());
    assert_eq!(statuses(&answers), [201, 200, 404, 201, 200]);
    still_serves(&log, service);
}

#[test]
fn old_and_odd_versions_of_http_are_answered_or_refused() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let answers = connection.raw(b"GET /v1/limits HTTP/1.0\r\n\r\n");
    assert_eq!(statuses(&answers), [200]);
    let answers = connection.raw(b"POST /entries HTTP/1.0\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(answers[0].refusal(), (400, "Malformed request".to_owned()));
    for refused in [
        &b"GET /v1/limits\r\n\r\n"[..],
        b"GET /v1/limits HTTP/3.0\r\n\r\n",
        b"GET  /v1/limits  HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nNull: \x00\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
    ] {
        let answers = connection.raw_and_no_more(refused);
        let fine = statuses(&answers).iter().all(|status| (400..500).contains(status) || *status == 505);
        assert!(fine, "{:?}: {answers:?}", String::from_utf8_lossy(refused));
    }
    still_serves(&log, service);
}

#[test]
fn expect_100_continue_is_told_about_a_body_that_is_too_large_before_it_is_sent() {
    let log = Log::sqlite();
    let service = log.serve();
    let mut stream = service.connection().connect().unwrap();
    let head = post_head("Content-Length: 8000000\r\nExpect: 100-continue\r\nConnection: close\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let answers = all_answers(stream);
    assert_eq!(statuses(&answers), [413], "not 100");
    still_serves(&log, service);
}

#[test]
fn random_bytes_never_end_the_service() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let statement = log.statement();
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = statement.bytes().to_vec();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        if bytes == statement.bytes()[..] {
            continue; // Every byte was replaced by itself.
        }
        let mut request =
            post_head(&format!("Content-Length: {}\r\nConnection: close\r\n", bytes.len())).into_bytes();
        request.extend(bytes);
        if random.bool() {
            let at = random.usize(..request.len());
            request[at] = random.u8(..);
        }
        let answers = connection.raw(&request);
        assert!(!statuses(&answers).contains(&500), "seed {seed}: {answers:?}");
    }
    assert_eq!(service.connection().get("/v1/entries").json()["entries"].as_array().unwrap().len(), 1);
    still_serves(&log, service);
}
