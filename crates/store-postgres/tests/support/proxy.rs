//! A wire between the store and the server that can be cut at a message boundary.
//!
//! It reads just enough of the protocol (PostgreSQL manual, chapter "Frontend/Backend Protocol")
//! to know a COMMIT, the end of an answer and the process that answers. Only the connection that
//! commits batches meets the fault; all others pass.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// COMMIT does not reach the server, and the connection is cut.
    CommitLost,
    /// The server commits, and the connection is cut before its answer arrives.
    AnswerLost,
    /// The server commits, and its answer never arrives over a connection that stays.
    AnswerWithheld,
    /// The server commits, and says that something is not as it should be.
    Warning,
    /// The server's process is terminated before the n-th request from BEGIN on, counted from 1.
    Termination(u32),
    /// The n-th request from BEGIN on does not arrive, nor what follows; the connection stays.
    Silence(u32),
    /// As `Silence`, but the server gets the beginning of the request and waits for the rest of it.
    SilenceWithin(u32),
}

impl Fault {
    fn is_about_commit(self) -> bool {
        matches!(self, Self::CommitLost | Self::AnswerLost | Self::AnswerWithheld | Self::Warning)
    }
}

/// A proxy in front of a server.
pub struct Proxy {
    /// The server's URL, by way of the proxy.
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    direct: String,
    fault: Mutex<Option<Fault>>,
    drops_settings: bool,
}

impl Proxy {
    /// Stands in front of the server with that URL.
    pub async fn before(direct: &str) -> Self {
        Self::start(direct, false).await
    }

    /// Stands in front of the server with that URL, and drops the settings of sessions as PgBouncer does with
    /// `ignore_startup_parameters = options`.
    pub async fn without_settings(direct: &str) -> Self {
        Self::start(direct, true).await
    }

    async fn start(direct: &str, drops_settings: bool) -> Self {
        let (login, place) = direct.rsplit_once('@').expect("the URL has a login");
        let (server, name) = place.split_once('/').expect("the URL has a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            server: server.into(),
            direct: direct.into(),
            fault: Mutex::new(None),
            drops_settings,
        });
        tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { url: format!("{login}@{address}/{name}?sslmode=disable"), shared }
    }

    /// Lets the next batch meet this fault.
    pub fn fail(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap() = Some(fault);
    }

    /// Waits until the fault was met.
    pub async fn met(&self) {
        while self.shared.fault.lock().unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether the fault has not been met yet; takes it back.
    pub fn spared(&self) -> bool {
        self.shared.fault.lock().unwrap().take().is_some()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A cut connection is what this is for.
            let _ = relay(client, shared).await;
        });
    }
}

async fn relay(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect(&shared.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let mut hello = read_hello(&mut from_client).await?;
    if shared.drops_settings {
        hello = without_options(&hello);
    }
    let commits = hello.windows(SEQUENCER.len()).any(|window| window == SEQUENCER);
    to_server.write_all(&hello).await?;
    let wire = Arc::new(Wire { shared, commits, answer: Mutex::new(Answer::Pass), backend: Mutex::new(0) });
    // Whichever side ends first ends the other: the sockets close with the futures.
    tokio::select! {
        ended = requests(from_client, to_server, &wire) => ended,
        ended = answers(from_server, to_client, &wire) => ended,
    }
}

/// The application name of the session that commits.
const SEQUENCER: &[u8] = b"tabellion sequencer";

/// What is to happen to the answer that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Pass,
    Cut,
    Withhold,
    Warn,
}

/// One connection.
struct Wire {
    shared: Arc<Shared>,
    commits: bool,
    answer: Mutex<Answer>,
    backend: Mutex<i32>,
}

impl Wire {
    /// The fault, if this connection is the one to meet it and the time has come.
    fn due(&self, is_due: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut fault = self.shared.fault.lock().unwrap();
        if self.commits && fault.is_some_and(is_due) { fault.take() } else { None }
    }

    fn treat_answer(&self, how: Answer) {
        *self.answer.lock().unwrap() = how;
    }
}

async fn requests(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, wire: &Wire) -> io::Result<()> {
    let (mut request, mut begins) = (0, true);
    loop {
        let message = read_message(&mut client).await?;
        let (kind, body) = (message[0], &message[5..]);
        // A simple query, or the Sync after Parse, Bind and Execute.
        let ends = matches!(kind, b'Q' | b'S');
        request = match begins {
            _ if body.starts_with(b"BEGIN") => 1,
            true => request + 1,
            false => request,
        };
        if begins && wire.due(|fault| fault == Fault::Termination(request)).is_some() {
            terminate(wire).await;
        }
        if begins && wire.due(|fault| fault == Fault::Silence(request)).is_some()
            || ends && wire.due(|fault| fault == Fault::SilenceWithin(request)).is_some()
        {
            return std::future::pending().await;
        }
        if kind == b'Q' && body.starts_with(b"COMMIT") {
            match wire.due(|fault| fault.is_about_commit()) {
                Some(Fault::CommitLost) => return Ok(()),
                Some(Fault::AnswerLost) => wire.treat_answer(Answer::Cut),
                Some(Fault::AnswerWithheld) => wire.treat_answer(Answer::Withhold),
                Some(Fault::Warning) => wire.treat_answer(Answer::Warn),
                _ => {}
            }
        }
        begins = ends;
        server.write_all(&message).await?;
    }
}

async fn answers(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, wire: &Wire) -> io::Result<()> {
    loop {
        let message = read_message(&mut server).await?;
        if let (b'K', [_, _, _, _, _, a, b, c, d, ..]) = (message[0], message.as_slice()) {
            *wire.backend.lock().unwrap() = i32::from_be_bytes([*a, *b, *c, *d]);
        }
        let answer = *wire.answer.lock().unwrap();
        let complete = message[0] == b'Z';
        match answer {
            // The server is done once it says so; nobody hears it.
            Answer::Cut if complete => return Ok(()),
            Answer::Cut | Answer::Withhold => continue,
            Answer::Warn => {
                client.write_all(&warning()).await?;
                wire.treat_answer(Answer::Pass);
            }
            Answer::Pass => {}
        }
        client.write_all(&message).await?;
    }
}

/// What the server says when an operator cancels the wait for the standbys.
fn warning() -> Vec<u8> {
    let fields =
        b"SWARNING\0VWARNING\0C01000\0Mcanceling wait for synchronous replication due to user request\0\0";
    let length = u32::try_from(fields.len() + 4).unwrap();
    [b"N".as_slice(), &length.to_be_bytes(), fields].concat()
}

/// Ends the server process of this connection and waits until it is gone.
async fn terminate(wire: &Wire) {
    let backend = *wire.backend.lock().unwrap();
    let mut connection = PgConnection::connect(&wire.shared.direct).await.expect("the server answers");
    let gone: bool = sqlx::query_scalar("SELECT pg_terminate_backend($1, 5000)")
        .bind(backend)
        .fetch_one(&mut connection)
        .await
        .expect("a process can be terminated");
    assert!(gone, "the process is gone");
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The first message has no type.
async fn read_hello(client: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut hello = vec![0; 4];
    client.read_exact(&mut hello).await?;
    read_rest(client, hello, 0).await
}

/// The first message of a client, without its `options`. After length and version it has names and values, each ended by a
/// zero byte, and another zero byte.
fn without_options(hello: &[u8]) -> Vec<u8> {
    let mut kept = hello[4..8].to_vec();
    let mut fields = hello[8..].split(|byte| *byte == 0);
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        if !name.is_empty() && name != b"options" {
            kept.extend([name, b"\0", value, b"\0"].concat());
        }
    }
    kept.push(0);
    let length = u32::try_from(kept.len() + 4).expect("a short message");
    [&length.to_be_bytes()[..], &kept].concat()
}

async fn read_message(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await?;
    read_rest(from, message, 1).await
}

/// Reads what the length at `at` promises; it counts itself.
async fn read_rest(from: &mut OwnedReadHalf, mut message: Vec<u8>, at: usize) -> io::Result<Vec<u8>> {
    let length = u32::from_be_bytes(*message[at..].first_chunk().expect("four bytes were read"));
    let begun = message.len();
    message.resize(at + length as usize, 0);
    from.read_exact(&mut message[begun..]).await?;
    Ok(message)
}
