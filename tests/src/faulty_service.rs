//! A transparency service with one fault: a proxy in front of a real service, which changes some of its answers.
//!
//! Not here: faults below HTTP, which a test can make with a bare socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::http::{Answer, Connection, chunk};

/// Maximum size of a request body in bytes; the suite sends no larger one.
const LARGEST_REQUEST: u64 = 16 << 20;

/// Changes the answer to a request, which is given by method and path.
pub type AnswerFault = fn(&str, &str, &mut Answer);

/// The proxy, shut down on drop.
pub struct FaultyService {
    address: SocketAddr,
    gone: Arc<AtomicBool>,
}

impl FaultyService {
    /// Starts a proxy of the service at `address`, `host:port`.
    pub fn of(address: &str, fault: AnswerFault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let this = Self { address: listener.local_addr().expect("it is bound"), gone: Arc::default() };
        let (service, gone) = (address.to_owned(), this.gone.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if gone.load(Ordering::SeqCst) {
                    break;
                }
                let service = service.clone();
                // A client that closes its connection is no failure of the test.
                std::thread::spawn(move || drop(forward(stream, &service, fault)));
            }
        });
        this
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for FaultyService {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Forwards one request, and closes the connection.
fn forward(stream: TcpStream, service: &str, fault: AnswerFault) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    let mut words = head.first().map_or("", String::as_str).split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = read_body(&mut reader, &head)?;
    let kept = ["accept", "content-type"];
    let headers: Vec<(&str, &str)> = fields(&head).filter(|(name, _)| kept.contains(name)).collect();
    let answer = Connection::to(service).try_send(method, path, &headers, &body);
    let Ok(mut answer) = answer else { return Ok(()) };
    fault(method, path, &mut answer);
    reader.get_mut().write_all(&answer.encode())
}

fn read_head(reader: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
    let lines = reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    Ok(lines.map(|line| lower_case_name(&line)).collect())
}

/// Returns a header line with its name in lower case; a request line is not changed.
fn lower_case_name(line: &str) -> String {
    match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    }
}

fn fields(head: &[String]) -> impl Iterator<Item = (&str, &str)> {
    head.iter().skip(1).filter_map(|line| line.split_once(": "))
}

fn read_body(reader: &mut BufReader<TcpStream>, head: &[String]) -> io::Result<Vec<u8>> {
    let field = |wanted: &str| fields(head).find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let mut body = Vec::new();
    if let Some(length) = field("content-length").and_then(|length| length.parse::<u64>().ok()) {
        reader.take(length.min(LARGEST_REQUEST)).read_to_end(&mut body)?;
    } else if field("transfer-encoding").is_some() {
        while let Some(piece) = chunk(reader)? {
            body.extend(piece);
        }
    }
    Ok(body)
}
