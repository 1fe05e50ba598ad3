//! Our own service on a socket, in a folder of its own.
#![allow(dead_code)]

use client::{Client, Options};
use log_for_tests::LogFolder;
use scitt::SignedStatement;
use transparency::Service;

/// A running service and a client of it.
pub struct Site {
    pub url: String,
    client: Client,
    _service: Service,
}

impl Site {
    /// Starts a service that runs the log of this folder.
    pub async fn start(folder: &LogFolder) -> Self {
        let service = Service::start(folder.config()).await.unwrap();
        let url = format!("http://{}/", service.addresses().public);
        let client = Client::new(&url, Options::default()).unwrap();
        Self { url, client, _service: service }
    }

    /// Registers a statement and waits for its receipt.
    pub async fn register(&self, statement: &SignedStatement) {
        self.client.submit(statement.bytes()).await.unwrap();
    }

    /// Hands in a statement that the policy refuses.
    pub async fn refused(&self, statement: &SignedStatement) {
        self.client.submit(statement.bytes()).await.unwrap_err();
    }
}
