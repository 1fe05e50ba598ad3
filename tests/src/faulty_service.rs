//! A transparency service with one fault: a proxy in front of a real service, which changes some of its answers.
//!
//! Not here: faults below HTTP, which a test can make with a bare socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::http::{Answer, Connection, Silence, chunk};

/// Maximum size of a request body in bytes; the suite sends no larger one.
const LARGEST_REQUEST: u64 = 16 << 20;

/// A request that the proxy forwards.
#[derive(Clone, Debug)]
pub struct ForwardedRequest {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Value of `Accept`.
    pub accept: Option<String>,
    /// Value of `Content-Type`.
    pub content_type: Option<String>,
    /// Body, without transfer coding.
    pub body: Vec<u8>,
}

/// Changes the answer to a request.
type AnswerFault = Mutex<Box<dyn FnMut(&ForwardedRequest, &mut Answer) + Send>>;

/// The proxy, shut down on drop.
pub struct FaultyService {
    address: SocketAddr,
    gone: Arc<AtomicBool>,
}

impl FaultyService {
    /// Starts a proxy of the service at `address`, `host:port`. `fault` changes one answer after the other.
    pub fn of(address: &str, fault: impl FnMut(&ForwardedRequest, &mut Answer) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let this = Self { address: listener.local_addr().expect("it is bound"), gone: Arc::default() };
        let (service, gone) = (address.to_owned(), this.gone.clone());
        let fault: Arc<AnswerFault> = Arc::new(Mutex::new(Box::new(fault)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if gone.load(Ordering::SeqCst) {
                    break;
                }
                let (service, fault) = (service.clone(), fault.clone());
                // A client that closes its connection is not a failure of the test.
                std::thread::spawn(move || drop(forward(stream, &service, &fault)));
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
fn forward(stream: TcpStream, service: &str, fault: &AnswerFault) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let request = read_request(&mut reader)?;
    let Ok(mut answer) = request.send_to(service) else { return Ok(()) };
    fault.lock().unwrap_or_else(PoisonError::into_inner)(&request, &mut answer);
    reader.get_mut().write_all(&answer.encode())
}

impl ForwardedRequest {
    fn send_to(&self, service: &str) -> Result<Answer, Silence> {
        let headers = [("accept", &self.accept), ("content-type", &self.content_type)];
        let headers = headers.map(|(name, value)| Some((name, value.as_deref()?)));
        let headers: Vec<(&str, &str)> = headers.into_iter().flatten().collect();
        Connection::to(service).try_send(&self.method, &self.path, &headers, &self.body)
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<ForwardedRequest> {
    let head = read_head(reader)?;
    let body = read_body(reader, &head)?;
    let mut words = head.first().map_or("", String::as_str).split(' ').map(str::to_owned);
    Ok(ForwardedRequest {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        accept: field(&head, "accept").map(str::to_owned),
        content_type: field(&head, "content-type").map(str::to_owned),
        body,
    })
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

fn field<'h>(head: &'h [String], wanted: &str) -> Option<&'h str> {
    let mut fields = head.iter().skip(1).filter_map(|line| line.split_once(": "));
    fields.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

fn read_body(reader: &mut BufReader<TcpStream>, head: &[String]) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if let Some(length) = field(head, "content-length").and_then(|length| length.parse::<u64>().ok()) {
        reader.take(length.min(LARGEST_REQUEST)).read_to_end(&mut body)?;
    } else if field(head, "transfer-encoding").is_some() {
        while let Some(piece) = chunk(reader)? {
            body.extend(piece);
        }
    }
    Ok(body)
}
