//! An HTTP server without work to do, which measures the cost of HTTP alone.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::http;
use crate::limits::{ECHO_BYTES, POLL, STARTS_WITHIN};
use crate::service::free_port;

/// Body of every response.
const RESPONSE: &[u8] = &[b'r'; ECHO_BYTES];

/// Reads bodies of `POST /entries` and sends a fixed response, until the process is killed.
///
/// # Errors
/// If the port cannot be listened on.
pub async fn serve(port: u16) -> anyhow::Result<()> {
    let routes = Router::new().route("/entries", post(|_: Bytes| async move { RESPONSE }));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

/// An echo server as a separate process, so that its CPU time is not counted as the client's.
pub(crate) struct EchoServer {
    child: Child,
    /// Listening address, on `127.0.0.1`.
    pub(crate) address: SocketAddr,
}

impl EchoServer {
    /// Starts the server with this program and arguments, and waits until it responds.
    pub(crate) async fn start(program: &Path, arguments: &[String]) -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(arguments).arg(port.to_string()).stdin(Stdio::null());
        let child = command.spawn().context("the echo server cannot be started")?;
        let echo = Self { child, address: (Ipv4Addr::LOCALHOST, port).into() };
        let begun = Instant::now();
        while http::get(echo.address, "/").await.is_err() {
            anyhow::ensure!(begun.elapsed() < STARTS_WITHIN, "the echo server does not respond");
            tokio::time::sleep(POLL).await;
        }
        Ok(echo)
    }

    /// Returns the process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
