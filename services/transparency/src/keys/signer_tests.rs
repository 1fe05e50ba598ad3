//! Taking announced keys up, over a log in memory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use scitt::Algorithm;
use serving::problem::ErrorDocumentation;
use store::contract::Appender;
use store::{LogKeys, Memory};
use tempfile::TempDir;

use super::*;
use crate::config::{AccessConfig, Database, ReceiptAlgorithm, SigningKeyFiles, WitnessConfig};
use crate::limits::Limits;

fn config(folder: &Path) -> Config {
    let path = |name: &str| folder.join(name);
    Config {
        origin: testkit::ORIGIN.to_owned(),
        iss: testkit::LOG_ISS.to_owned(),
        public_url: "http://127.0.0.1:0".to_owned(),
        database: Database::Sqlite { path: path("log.sqlite"), any_filesystem: false },
        migrate: true,
        state_dir: path("state"),
        pin: None,
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        admin_listen: None,
        admin_socket: None,
        tls: None,
        plaintext: false,
        keys: SigningKeyFiles {
            receipt: path("receipt.pem"),
            checkpoint: path("checkpoint.pem"),
            index: None,
            operator: None,
        },
        receipt_algorithm: ReceiptAlgorithm::default(),
        policy: path("policy.toml"),
        access: AccessConfig::default(),
        witnesses: WitnessConfig::default(),
        limits: Limits::default(),
        error_documentation: ErrorDocumentation::default(),
    }
}

fn write(path: &Path, key: &SigningKey) {
    fs::write(path, key.to_pkcs8_pem().unwrap()).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A signer whose two keys can be replaced.
struct Rotated {
    folder: TempDir,
    store: Memory,
    signer: LogSigner,
    epoch: u64,
}

impl Rotated {
    async fn log() -> Self {
        let (folder, store) = (tempfile::tempdir().unwrap(), Memory::new());
        let epoch = Appender::new(Arc::new(store.clone())).await.head().epoch;
        let config = config(folder.path());
        write(&config.keys.receipt, &SigningKey::generate(Algorithm::Es256).unwrap());
        write(&config.keys.checkpoint, &SigningKey::generate(Algorithm::EdDsa).unwrap());
        let signer = LogSigner::open(&config, Arc::new(store.clone())).await.unwrap();
        Self { folder, store, signer, epoch }
    }

    /// Announces a key whose file is here, and lets the signer notice it. Returns its kid.
    async fn announce(&self, file: &str, key: &SigningKey, kid: Vec<u8>, public: Vec<u8>) -> Vec<u8> {
        write(&file_of_kid(&self.folder.path().join(file), &kid), key);
        let replaced = self.store.keys().await.unwrap();
        let replaced = replaced.iter().find(|known| is_receipt_key(known) == (file == "receipt.pem"));
        let replaces = replaced.unwrap().kid.clone();
        let announcement = KeyAnnouncement { kid: kid.clone(), public: public.into(), replaces, at: 1 };
        self.store.announce_key(&announcement).await.unwrap();
        assert!(self.signer.reload().await.unwrap());
        kid
    }

    async fn announce_receipt_key(&self) -> Vec<u8> {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        self.announce("receipt.pem", &key, receipt_kid(&key), cose_key(&key).encode()).await
    }

    async fn announce_checkpoint_key(&self) -> Vec<u8> {
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        let note_key =
            LocalKey::from_pkcs8_pem(testkit::ORIGIN.parse().unwrap(), &key.to_pkcs8_pem().unwrap()).unwrap();
        let public = note_key.key().to_string().into_bytes();
        self.announce("checkpoint.pem", &key, checkpoint_kid(&note_key), public).await
    }

    async fn announced(&self) -> Vec<Vec<u8>> {
        self.store.announced_keys().await.unwrap().into_iter().map(|key| key.kid).collect()
    }
}

#[tokio::test]
async fn a_key_announced_a_moment_ago_is_not_taken_up_with_one_that_is_due() {
    let log = Rotated::log().await;
    let due = log.announce_receipt_key().await;
    let long_ago = Instant::now().checked_sub(KEY_LISTED).unwrap();
    log.signer.noticed.lock().await.insert(due.clone(), long_ago);
    let new = log.announce_checkpoint_key().await;
    assert!(*log.signer.waits.borrow());
    log.signer.take_up(log.epoch).await.unwrap();
    assert_eq!(log.announced().await, std::slice::from_ref(&new));
    assert_eq!(log.signer.kid(), BASE64URL_NOPAD.encode(&due));
    assert!(!*log.signer.waits.borrow(), "nothing is due");
    log.signer.noticed.lock().await.insert(new, long_ago);
    log.signer.take_up(log.epoch).await.unwrap();
    assert!(log.announced().await.is_empty());
}

#[tokio::test]
async fn a_key_whose_file_has_gone_is_not_taken_up_until_it_is_back() {
    let log = Rotated::log().await;
    let old = log.signer.kid();
    let new = log.announce_receipt_key().await;
    let long_ago = Instant::now().checked_sub(KEY_LISTED).unwrap();
    log.signer.noticed.lock().await.insert(new.clone(), long_ago);
    let file = file_of_kid(&log.folder.path().join("receipt.pem"), &new);
    let elsewhere = log.folder.path().join("elsewhere.pem");
    fs::rename(&file, &elsewhere).unwrap();
    log.signer.take_up(log.epoch).await.unwrap();
    assert_eq!(log.announced().await, std::slice::from_ref(&new));
    assert_eq!((log.signer.kid(), log.signer.missing()), (old, None));
    assert!(!*log.signer.waits.borrow(), "nothing can be taken up");
    fs::rename(&elsewhere, &file).unwrap();
    log.signer.reload().await.unwrap();
    assert!(*log.signer.waits.borrow());
    log.signer.take_up(log.epoch).await.unwrap();
    assert_eq!(log.signer.kid(), BASE64URL_NOPAD.encode(&new));
}
