//! HTTP/1.1 by hand: one connection, one request at a time, and answers taken apart without the library under test.
//!
//! Not here: TLS, redirects, retries.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use scitt::Problem;

use crate::events::Coming;
use crate::log::AUDITOR_TOKEN;

/// How long an answer may take. Longer than any of the service's own limits.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this much silence on a raw connection no more answers are expected.
const SILENCE: Duration = Duration::from_secs(4);
/// No answer of the service is larger.
const LARGEST_BODY: u64 = 64 << 20;

/// A connection to a service, made when it is first needed and again after it broke.
pub struct Connection {
    address: String,
    patience: Duration,
    stream: Option<BufReader<TcpStream>>,
}

/// Why there was no answer.
#[derive(Debug)]
pub enum Silence {
    /// Nobody listened: nothing was asked.
    NotAsked(io::Error),
    /// The connection broke after something was sent: what was asked may have happened.
    Unknown(io::Error),
}

impl Connection {
    /// To `host:port`, or the same with `http://` before it.
    pub fn to(address: &str) -> Self {
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        Self { address: address.to_owned(), patience: PATIENCE, stream: None }
    }

    /// The same, with answers given up after a time.
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Where it leads: `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks for something, and expects an answer.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// Reads as somebody who may read closed bodies.
    pub fn get_as_auditor(&mut self, path: &str) -> Answer {
        let token = format!("Bearer {AUDITOR_TOKEN}");
        self.send("GET", path, &[("Authorization", &token)], b"")
    }

    /// Hands in a statement, and expects an answer.
    pub fn post(&mut self, body: &[u8]) -> Answer {
        self.send("POST", "/entries", &[("Content-Type", "application/cose")], body)
    }

    /// Sends a request, and expects an answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|silence| panic!("{method} {path}: {silence:?}"))
    }

    /// Sends a request to a service that may not be there, or may be gone before it answers.
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

    /// Sends a request on a connection of its own, and gives an answer of which only the head has been read.
    pub fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Coming {
        let mut stream = BufReader::new(self.connect().expect("the service listens"));
        stream
            .get_mut()
            .write_all(&request(method, path, &self.address, headers, body))
            .expect("it takes a request");
        let head = Answer::head(&mut stream).unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        Coming::new(head, stream)
    }

    /// Sends raw bytes on a connection of their own and reads answers until the other side hangs up, or says no more.
    pub fn raw(&self, bytes: &[u8]) -> Vec<Answer> {
        all_answers(self.send_raw(bytes))
    }

    /// The same by a client that says that it will send no more.
    pub fn raw_and_no_more(&self, bytes: &[u8]) -> Vec<Answer> {
        let stream = self.send_raw(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        all_answers(stream)
    }

    fn send_raw(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect().expect("the service listens");
        stream.set_read_timeout(Some(SILENCE)).expect("a socket");
        // It may answer and hang up before it has heard all: that is an answer.
        let _ = stream.write_all(bytes);
        stream
    }

    /// A socket, for what has no shape.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Every answer on a connection until it is closed, or silent.
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

/// An answer, taken apart.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The whole body.
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

    /// All but the body.
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

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A header's value, which must be there.
    #[track_caller]
    pub fn must_have(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("no JSON: {why}: {self:?}"))
    }

    /// The problem in the body: RFC 9290, with what SCRAPI -11 (2.3) asks for.
    #[track_caller]
    pub fn problem(&self) -> Problem {
        assert!(self.status >= 400, "no problem: {self:?}");
        assert_eq!(self.header("content-type"), Some("application/concise-problem-details+cbor"), "{self:?}");
        let problem = Problem::parse(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"));
        assert!(problem.title.as_deref().is_some_and(|title| !title.is_empty()), "{problem:?}");
        assert!(problem.detail.as_deref().is_some_and(|detail| !detail.is_empty()), "{problem:?}");
        assert_eq!(problem.response_code, None, "-4 is a CoAP code, not the status");
        problem
    }

    /// Status and title of a refusal.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        (self.status, self.problem().title.unwrap_or_default())
    }

    /// Refuses an answer that tells a client to wait and not how long (I12).
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

/// The next chunk, or `None` after the last.
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

/// An address that was free a moment ago, for a service that must be found where it was when it starts again. A connection that
/// ended there keeps its port from whoever asks for any, and not from who asks for this one.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let client = TcpStream::connect(address).expect("our own listener");
    // Who hangs up first is who remembers the connection.
    drop(listener.accept().expect("our own client"));
    drop(client);
    address
}
