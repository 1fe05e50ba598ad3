//! An HTTP server without work to do, which measures the cost of HTTP alone.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::http;
use crate::service::free_port;

/// Response body, as long as a typical receipt.
const ANSWER: &[u8] = &[b'r'; 600];

/// Reads bodies of `POST /entries` and sends [`ANSWER`], until the process is killed.
pub async fn serve(port: u16) -> anyhow::Result<()> {
    let routes = Router::new().route(
        "/entries",
        post(|body: Bytes| async move {
            debug_assert!(!body.is_empty());
            ANSWER
        }),
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

/// An echo server as a separate process, so that its CPU time is not counted as the client's.
pub struct Echo {
    child: Child,
    /// Listening address, on `127.0.0.1`.
    pub address: SocketAddr,
}

impl Echo {
    /// Starts the server, and waits until it responds.
    pub async fn start() -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        let child = command.args(["echo", &port.to_string()]).stdin(Stdio::null()).spawn().context("echo")?;
        let echo = Self { child, address: (Ipv4Addr::LOCALHOST, port).into() };
        for _ in 0..100 {
            if http::get(echo.address, "/").await.is_ok() {
                return Ok(echo);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("the echo server does not answer")
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
