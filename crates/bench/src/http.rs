//! A minimal HTTP/1.1 client, which reads only what is needed to find the end of a response: a full client would take
//! CPU time from the server on the same cores.

use std::net::SocketAddr;

use anyhow::{Context, anyhow, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits::MAX_RESPONSE;

/// Sizes of the parts of a response, as [`frame`] finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Status code.
    pub status: u16,
    /// Size of status line and headers in bytes.
    pub head: usize,
    /// Size of the body in bytes.
    pub body: usize,
    /// `true` if the server closes the connection after the response.
    pub close: bool,
    /// `true` if the response says when to retry (`Retry-After`).
    pub retry_after: bool,
}

/// Parses the head of a response; `None` if it is incomplete.
pub(crate) fn frame(received: &[u8]) -> anyhow::Result<Option<Frame>> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if received.len() > MAX_RESPONSE {
            Err(anyhow!("a response head without an end"))
        } else {
            Ok(None)
        };
    };
    let head = std::str::from_utf8(&received[..end]).context("a response head that is not text")?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let mut frame = Frame {
        status: status.with_context(|| status_line.to_owned())?,
        head: end + 4,
        body: 0,
        close: false,
        retry_after: false,
    };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", length) => frame.body = length.parse().context("content-length")?,
            ("connection", value) => frame.close = value.eq_ignore_ascii_case("close"),
            ("retry-after", _) => frame.retry_after = true,
            ("transfer-encoding", coding) => bail!("transfer-encoding {coding} is not understood"),
            _ => {}
        }
    }
    if frame.body > MAX_RESPONSE {
        bail!("a body of {} bytes", frame.body);
    }
    Ok(Some(frame))
}

/// Returns the bytes of a `POST` request.
pub(crate) fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A connection for several requests.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    /// Opens a connection.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| address.to_string())?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, received: Vec::with_capacity(4096) })
    }

    /// Sends a request, and reads the response, whose body is returned by [`body`](Self::body).
    pub async fn send(&mut self, request: &[u8]) -> anyhow::Result<Frame> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let frame = loop {
            match frame(&self.received)? {
                Some(frame) if self.received.len() >= frame.head + frame.body => break frame,
                _ => self.more().await?,
            }
        };
        if frame.close {
            let received = std::mem::take(&mut self.received);
            *self = Self { received, ..Self::open(self.address).await? };
        }
        Ok(frame)
    }

    /// Returns the body of the last response.
    pub fn body(&self, frame: &Frame) -> &[u8] {
        &self.received[frame.head..frame.head + frame.body]
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(anyhow!("the connection was closed within a response")),
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of a `GET` request.
pub(crate) fn get_request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// Sends a `GET` request on a new connection, and returns status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    let mut connection = Connection::open(address).await?;
    let frame = connection.send(&get_request(path)).await?;
    Ok((frame.status, String::from_utf8_lossy(connection.body(&frame)).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_its_content_length_says() {
        let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 3\r\nlocation: /x\r\n\r\nabcHTTP";
        let frame = frame(answer).unwrap().unwrap();
        assert_eq!((frame.status, frame.head, frame.body, frame.close), (201, 57, 3, false));
        assert_eq!(&answer[frame.head..frame.head + frame.body], b"abc");
    }

    #[test]
    fn half_a_head_is_no_answer_yet() {
        assert_eq!(frame(b"").unwrap(), None);
        assert_eq!(frame(b"HTTP/1.1 201 Created\r\ncontent-length: 3\r\n").unwrap(), None);
    }

    #[test]
    fn an_answer_without_a_length_has_no_body() {
        assert_eq!(frame(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().unwrap().body, 0);
    }

    #[test]
    fn a_server_that_closes_says_so() {
        assert!(frame(b"HTTP/1.1 503 Busy\r\nConnection: Close\r\n\r\n").unwrap().unwrap().close);
    }

    #[test]
    fn what_is_not_understood_is_an_error_and_not_a_wrong_length() {
        assert!(frame(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").is_err());
        assert!(frame(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n").is_err());
        assert!(frame(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n").is_err());
        assert!(frame(b"SSH-2.0-x\r\n\r\n").is_err());
    }
}
