//! A plain HTTP/1.1 client: one connection, one request at a time, and responses parsed without the libraries under
//! test.
//!
//! Not here: TLS, redirects, retries.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use scitt::{Problem, Receipt, SignedStatement};

use crate::events::Coming;
use crate::log::AUDITOR_TOKEN;

/// Read and write timeout, longer than any timeout of the service.
const PATIENCE: Duration = Duration::from_secs(30);
/// Read timeout of a raw connection, after which no further response is expected.
const SILENCE: Duration = Duration::from_secs(4);
/// Maximum size of a response body in bytes; the service sends no larger one.
const LARGEST_BODY: u64 = 64 << 20;

/// A connection to a service, opened at the first request and again after it broke.
pub struct Connection {
    address: String,
    patience: Duration,
    stream: Option<BufReader<TcpStream>>,
}

/// Error of a request without a response.
#[derive(Debug)]
pub enum Silence {
    /// No connection was made, so that the request was not sent.
    NotAsked(io::Error),
    /// The connection broke after the request was sent, so that it may have been processed.
    Unknown(io::Error),
}

impl Connection {
    /// Creates a client for `host:port` or `http://host:port`.
    pub fn to(address: &str) -> Self {
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        Self { address: address.to_owned(), patience: PATIENCE, stream: None }
    }

    /// Sets the read and write timeout.
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the address, `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a `GET` request. Panics without a response.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// Sends a GET request with [`AUDITOR_TOKEN`], which may read restricted payloads. Panics without a response.
    pub fn get_as_auditor(&mut self, path: &str) -> Answer {
        let token = format!("Bearer {AUDITOR_TOKEN}");
        self.send("GET", path, &[("Authorization", &token)], b"")
    }

    /// Registers a statement (`POST /entries`). Panics without a response.
    pub fn post(&mut self, body: &[u8]) -> Answer {
        self.send("POST", "/entries", &[("Content-Type", "application/cose")], body)
    }

    /// Registers a statement. Panics unless the response is its receipt.
    #[track_caller]
    pub fn register(&mut self, statement: &SignedStatement) -> Receipt {
        let answer = self.post(statement.bytes());
        assert_eq!(answer.status, 201, "{answer:?}");
        Receipt::parse(answer.body).expect("a receipt")
    }

    /// Sends a request. Panics without a response.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|silence| panic!("{method} {path}: {silence:?}"))
    }

    /// Sends a request to a service that may be down, or end before it responds.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, Silence> {
        let request = request(method, path, &self.address, headers, body);
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(self.connect().map_err(Silence::NotAsked)?),
        };
        let asked = stream.get_mut().write_all(&request);
        let answer = asked.and_then(|()| Answer::read(&mut stream, method == "HEAD"));
        let answer = answer.map_err(Silence::Unknown)?;
        if answer.header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    /// Sends a request on a new connection, and returns the response after its head.
    pub fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Coming {
        let mut stream = BufReader::new(self.connect().expect("the service listens"));
        stream
            .get_mut()
            .write_all(&request(method, path, &self.address, headers, body))
            .expect("it takes a request");
        let head = Answer::head(&mut stream).unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        Coming::new(head, stream)
    }

    /// Sends bytes on a new connection, and reads responses until the peer closes it or sends nothing for `SILENCE`.
    pub fn raw(&self, bytes: &[u8]) -> Vec<Answer> {
        all_answers(self.send_raw(bytes))
    }

    /// Sends bytes like [`raw`](Self::raw), then shuts down the sending side of the connection.
    pub fn raw_and_no_more(&self, bytes: &[u8]) -> Vec<Answer> {
        let stream = self.send_raw(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        all_answers(stream)
    }

    fn send_raw(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect().expect("the service listens");
        stream.set_read_timeout(Some(SILENCE)).expect("a socket");
        // The service may respond and close the connection before it has read everything, which is a valid response.
        let _ = stream.write_all(bytes);
        stream
    }

    /// Opens a socket with the timeouts set, for bytes that are not a valid request.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Reads all responses on a connection until it is closed or the read timeout is reached.
pub fn all_answers(stream: TcpStream) -> Vec<Answer> {
    let mut stream = BufReader::new(stream);
    std::iter::from_fn(|| Answer::read(&mut stream, false).ok()).collect()
}

fn request(method: &str, path: &str, host: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    if !body.is_empty() || method == "POST" {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    [request.as_bytes(), body].concat()
}

/// A parsed HTTP response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// Complete body, without transfer coding.
    pub body: Vec<u8>,
}

impl Answer {
    fn read(stream: &mut BufReader<TcpStream>, to_head: bool) -> io::Result<Self> {
        let mut answer = Self::head(stream)?;
        if !to_head && !matches!(answer.status, 100..200 | 204 | 304) {
            answer.body = answer.read_body(stream)?;
        }
        Ok(answer)
    }

    /// Reads status line and headers.
    fn head(stream: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let status = status(&line(stream)?)?;
        let mut headers = Vec::new();
        loop {
            let line = line(stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| nonsense(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Self { status, headers, body: Vec::new() })
    }

    fn read_body(&self, stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = self.header("content-length") {
            let length: u64 = length.parse().map_err(|_| nonsense(length))?;
            if length > LARGEST_BODY || stream.take(length).read_to_end(&mut body)? as u64 != length {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "half an answer"));
            }
        } else if self.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = chunk(stream)? {
                body.extend(chunk);
            }
        } else {
            stream.take(LARGEST_BODY).read_to_end(&mut body)?;
        }
        Ok(body)
    }

    /// Sets or removes a header, whose name must be in lower case.
    pub fn set_header(&mut self, name: &str, value: Option<&str>) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    /// Returns the response as bytes of HTTP/1.1, for a server that closes the connection after it.
    pub fn encode(&self) -> Vec<u8> {
        let framing = ["connection", "content-length", "transfer-encoding"];
        let kept = self.headers.iter().filter(|(name, _)| !framing.contains(&name.as_str()));
        let fields: String = kept.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = match self.status {
            204 => String::new(),
            _ => format!("content-length: {}\r\n", self.body.len()),
        };
        let head = format!("HTTP/1.1 {} x\r\n{fields}{length}connection: close\r\n\r\n", self.status);
        [head.as_bytes(), &self.body].concat()
    }

    /// Returns the value of a header, whose name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a header. Panics if it is absent.
    #[track_caller]
    pub fn must_have(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    /// Returns the body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("no JSON: {why}: {self:?}"))
    }

    /// Returns the problem in the body: RFC 9290, with the entries that SCRAPI -11, section 2.3, requires; or RFC 9457
    /// with the same members, as it is sent under `/v1`.
    #[track_caller]
    pub fn problem(&self) -> Problem {
        assert!(self.status >= 400, "no problem: {self:?}");
        let problem = match self.must_have("content-type") {
            "application/problem+json" => self.problem_in_json(),
            media => {
                assert_eq!(media, "application/concise-problem-details+cbor", "{self:?}");
                Problem::parse(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
            }
        };
        assert!(problem.title.as_deref().is_some_and(|title| !title.is_empty()), "{problem:?}");
        assert!(problem.detail.as_deref().is_some_and(|detail| !detail.is_empty()), "{problem:?}");
        assert_eq!(problem.response_code, None, "-4 is a CoAP code, not the status");
        problem
    }

    #[track_caller]
    fn problem_in_json(&self) -> Problem {
        let json = self.json();
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        let problem = Problem::new(text("title"), text("detail")).code(text("code"));
        let problem = problem.instance(text("instance"));
        match json["rule"].as_str() {
            Some(rule) => problem.rule(rule),
            None => problem,
        }
    }

    /// Returns status and title of a refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        (self.status, self.problem().title.unwrap_or_default())
    }

    /// Asserts that the response has a positive `Retry-After` (I12).
    #[track_caller]
    pub fn must_say_when_to_come_back(&self) {
        let seconds: Option<u64> = self.must_have("retry-after").parse().ok();
        assert!(seconds.is_some_and(|seconds| seconds > 0), "{self:?}");
    }
}

fn status(line: &str) -> io::Result<u16> {
    let mut words = line.split(' ');
    let version = words.next().unwrap_or_default();
    if !version.starts_with("HTTP/1.") {
        return Err(nonsense(line));
    }
    words.next().and_then(|code| code.parse().ok()).ok_or_else(|| nonsense(line))
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 || !line.ends_with("\r\n") {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed"));
    }
    Ok(line.trim_end().to_owned())
}

/// Reads the next chunk; `None` after the last.
pub(crate) fn chunk(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let size = line(stream)?;
    let size = u64::from_str_radix(&size, 16).map_err(|_| nonsense(&size))?;
    let mut chunk = Vec::new();
    stream.take(size).read_to_end(&mut chunk)?;
    line(stream)?;
    Ok((size > 0).then_some(chunk))
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("no HTTP: {what}"))
}

/// Returns a free address, for a service that must have the same address after a restart.
///
/// A closed connection leaves the port in TIME_WAIT: the kernel then assigns it to no socket that asks for any port,
/// but a listener that asks for this port gets it.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let client = TcpStream::connect(address).expect("our own listener");
    // The side that closes first keeps the connection in TIME_WAIT.
    drop(listener.accept().expect("our own client"));
    drop(client);
    address
}
