//! The table of all settings, with name, default and purpose.

/// A setting. Its flag `--admin-listen`, variable `TABELLION_ADMIN_LISTEN` and key `admin_listen` have related names.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The key in the configuration file, such as `admin_listen`.
    pub key: &'static str,
    /// The value that is used if no source provides one.
    pub default: Option<&'static str>,
    /// The purpose of the setting in one line, for help texts.
    pub about: &'static str,
    /// True if the value is never printed.
    pub secret: bool,
    /// True if a running service applies a new value on `SIGHUP`.
    pub reloads: bool,
}

const fn fixed(key: &'static str, default: Option<&'static str>, about: &'static str) -> Setting {
    Setting { key, default, about, secret: false, reloads: false }
}

const fn reloading(key: &'static str, default: Option<&'static str>, about: &'static str) -> Setting {
    Setting { key, default, about, secret: false, reloads: true }
}

const fn secret(key: &'static str, about: &'static str) -> Setting {
    Setting { key, default: None, about, secret: true, reloads: false }
}

/// All settings, in display order.
pub const SETTINGS: &[Setting] = &[
    fixed("origin", None, "the log's name: a host and path without scheme; never changes"),
    fixed("iss", None, "the log's issuer URL in receipts; https:// and the origin unless given"),
    fixed("public_url", None, "where clients reach the service; Location headers start with it"),
    secret("db", "sqlite:PATH or postgres://USER@HOST/NAME"),
    fixed("state_dir", Some("state"), "folder of the pin; must survive a loss of the database"),
    secret(
        "pin",
        "postgres://USER@HOST/NAME that holds the pin for several hosts; a file in state_dir unless given",
    ),
    fixed("listen", Some("127.0.0.1:7390"), "address of the public listener"),
    fixed(
        "admin_listen",
        Some("127.0.0.1:7391"),
        "address of health and metrics; commands there need an operator's token",
    ),
    fixed(
        "admin_socket",
        None,
        "Unix socket for the operator's commands, mode 0600; default admin.sock in state_dir, none if empty",
    ),
    fixed("receipt_key", Some("keys/receipt.pem"), "key that signs receipts (PKCS#8 PEM, mode 0600)"),
    fixed("receipt_alg", Some("ES256"), "ES256, ES384 or EdDSA; must fit the receipt key"),
    fixed("checkpoint_key", Some("keys/checkpoint.pem"), "key that signs C2SP checkpoints (Ed25519)"),
    fixed("operator_key", Some("keys/operator.pem"), "key that signs registration policies"),
    fixed(
        "index_key",
        Some("keys/index.pem"),
        "key that signs heads of the search index, from the policy's [index]",
    ),
    reloading("policy", Some("policy.toml"), "the registration policy to publish"),
    reloading("tls_cert", None, "certificate chain, PEM"),
    reloading("tls_key", None, "private key of the certificate, PEM"),
    fixed("plaintext", Some("false"), "serve without TLS on an address that is not loopback"),
    reloading(
        "tokens_file",
        None,
        "bearer tokens, one `name token` per line, each with its own rate limit; see help access",
    ),
    reloading(
        "anonymous_role",
        Some("reader"),
        "what callers without a token may read: public, reader or auditor; see help access",
    ),
    reloading(
        "closed_content_types",
        Some("[\"application/agent-conversation\", \"application/vap-audit+json\"]"),
        "content types whose statements and payloads only auditors may read",
    ),
    reloading(
        "cors_origins",
        Some("[]"),
        "origins of web pages that may read non-public resources; * allows all",
    ),
    reloading("token_required", Some("false"), "reject registrations without a token (401)"),
    reloading("trusted_proxies", Some("[]"), "addresses of proxies whose X-Forwarded-For is trusted"),
    reloading("write_rate", Some("500"), "registrations per second and client, on average"),
    reloading("write_burst", Some("2000"), "registrations per client in a burst"),
    reloading("read_rate", Some("2000"), "reads per second and client, on average"),
    reloading("read_burst", Some("8000"), "reads per client in a burst"),
    reloading(
        "issuer_rate",
        None,
        "registrations per second and issuer, over all processes of the log; unlimited by default",
    ),
    reloading(
        "issuer_rates",
        None,
        "rates of single issuers instead of issuer_rate: { \"https://issuer.example\" = 500 }",
    ),
    reloading(
        "max_statement_bytes",
        Some("8388608"),
        "maximum size of a statement; the policy may have a lower limit",
    ),
    reloading("max_batch_bytes", Some("16777216"), "maximum size of a batch, up to 33554432"),
    fixed("connections", Some("4096"), "maximum number of open connections; further ones wait"),
    fixed("inflight_bytes", Some("67108864"), "maximum bytes of concurrently received bodies; 503 beyond"),
    fixed(
        "queue_entries",
        Some("16384"),
        "maximum number of statements waiting for the sequencer; 503 beyond",
    ),
    fixed("inbox_entries", Some("32768"), "maximum number of accepted statements in the inbox; 503 beyond"),
    fixed("inbox_bytes", Some("4294967296"), "maximum bytes of the inbox; 503 beyond"),
    fixed(
        "inbox_issuer_entries",
        Some("8192"),
        "maximum number of one issuer's statements in the inbox; 503 beyond",
    ),
    fixed(
        "inbox_issuer_bytes",
        Some("1073741824"),
        "maximum bytes of one issuer's statements in the inbox; 503 beyond",
    ),
    fixed("linger_ms", Some("0"), "time a busy sequencer waits to fill a batch, 0 to 5 ms"),
    fixed("answer_within_ms", Some("1000"), "time after which a pending registration is answered with 202"),
    fixed("witness_policy", None, "witnesses and their quorum (C2SP tlog-policy); none by default"),
    fixed(
        "witness_interval_seconds",
        Some("60"),
        "interval of repeated cosignatures on an unchanged checkpoint",
    ),
    fixed("retention_sweep_seconds", Some("3600"), "interval of the search for entries past their retention"),
    fixed("fsck_rate", Some("500"), "rows per second of the background check of the log; 0 disables it"),
    fixed("fsck_every_seconds", Some("3600"), "pause between two checks of the whole log"),
    fixed(
        "min_free_bytes",
        Some("67108864"),
        "minimum free bytes for the database file and state_dir; with fewer, registration is refused (503)",
    ),
    fixed(
        "db_migrate",
        Some("true"),
        "update the tables of PostgreSQL at the start; if false, their owner runs `tabellion log migrate`",
    ),
    fixed(
        "any_filesystem",
        Some("false"),
        "allow SQLite on a network or overlay file system, with one connection and slower commits",
    ),
    reloading("log_level", Some("info"), "error, warn, info, debug or trace"),
    fixed("log_format", Some("text"), "text or json"),
    fixed(
        "otlp",
        None,
        "spans go to this OpenTelemetry collector (/v1/traces); needs a build with the feature otlp",
    ),
    fixed(
        "error_documentation",
        Some("https://tabellion.dev/errors/"),
        "address of the documentation of error codes, which problem details link to",
    ),
    fixed("log_url", Some("http://127.0.0.1:7390"), "URL of the service for client commands"),
    fixed("trust", None, "the trust file of `verify`"),
];

/// Returns the setting with this key, if [`SETTINGS`] has it.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Returns the key in [`SETTINGS`] most similar to a mistyped one; `None` if none is similar.
pub fn nearest(key: &str) -> Option<&'static str> {
    SETTINGS
        .iter()
        .map(|setting| (strsim::jaro_winkler(setting.key, key), setting.key))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}
