//! An HTTP server that does nothing: what HTTP alone costs here.

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

/// As long as a receipt.
const ANSWER: &[u8] = &[b'r'; 600];

/// Takes bodies and answers them, for ever.
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

/// The server, as a process of its own: its CPU time is not the client's.
pub struct Echo {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Echo {
    /// Starts it and waits until it answers.
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

    /// Its process.
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
