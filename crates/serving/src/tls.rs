//! TLS of a listener: rustls with ring; certificate and key are read again on reload.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Certificate chain and private key of a listener, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// The private key of the leaf certificate.
    pub key: PathBuf,
}

/// The TLS configuration in force. Connections made before a reload keep theirs.
pub struct Tls {
    config: ArcSwap<ServerConfig>,
}

/// Reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or contains no PEM of its kind.
    #[error("{path}: {why}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The defect, in words.
        why: String,
    },
    /// Key and certificate do not match, or rustls does not accept them.
    #[error("the TLS certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads certificate and key.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self { config: ArcSwap::from_pointee(server_config(files)?) })
    }

    /// Reads certificate and key again; if that fails, the old ones stay in force.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), TlsError> {
        self.config.store(Arc::new(server_config(files)?));
        Ok(())
    }

    /// An acceptor for one new connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }
}

fn server_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let unreadable = |path: &PathBuf, why: String| TlsError::File { path: path.clone(), why };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| unreadable(&files.certificate, why.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable(&files.certificate, "holds no certificate".into()));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|why| unreadable(&files.key, why.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // A client that offers only others gets no connection (RFC 7301, section 3.2).
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec(), b"http/1.0".to_vec()];
    Ok(config)
}
