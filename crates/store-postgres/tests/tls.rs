//! The URL says how the server must prove itself.
#![allow(clippy::unwrap_used)]

mod support;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sqlx::{Connection, PgConnection};
use store::LogWriter;
use store::contract::ORIGIN;
use store_postgres::{Options, Postgres};

use support::server::Server;

#[tokio::test]
async fn the_server_is_who_the_url_says_or_is_not_spoken_to() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (authority(), authority());
    for (name, authority) in [("ours.pem", &ours), ("other.pem", &other)] {
        std::fs::write(folder.path().join(name), authority.pem()).unwrap();
    }
    let verified = |authority: &str, host: &str| {
        let url = server.url.replace("127.0.0.1", host);
        format!("{url}?sslmode=verify-full&sslrootcert={}/{authority}", folder.path().display())
    };

    assert!(!reaches(&verified("ours.pem", "localhost")).await, "a server without TLS");
    turn_tls_on(&server, &ours).await;
    assert!(reaches(&verified("ours.pem", "localhost")).await);
    assert!(!reaches(&verified("other.pem", "localhost")).await, "a certificate of another authority");
    assert!(!reaches(&verified("ours.pem", "127.0.0.1")).await, "a certificate for another name");
    assert!(reaches(&format!("{}?sslmode=require", server.url)).await);

    let encrypted = Options::from_url(&verified("ours.pem", "localhost")).unwrap();
    Postgres::migrate(&encrypted).await.unwrap();
    Postgres::connect(&encrypted).await.unwrap().open(ORIGIN).await.unwrap();
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

async fn turn_tls_on(server: &Server, authority: &Authority) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    server.place("server.crt", &certificate.pem());
    server.place("server.key", &key.serialize_pem());
    let mut session = PgConnection::connect(&server.url).await.unwrap();
    for statement in ["ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
        sqlx::raw_sql(statement).execute(&mut session).await.unwrap();
    }
    for _ in 0..100 {
        if reaches(&format!("{}?sslmode=require", server.url)).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the server does not speak TLS");
}

/// Whether a store can be made ready by way of that URL.
async fn reaches(url: &str) -> bool {
    Postgres::migrate(&Options::from_url(url).unwrap()).await.is_ok()
}
