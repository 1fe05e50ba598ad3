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
    fixed("state_dir", Some("state"), "holds the pin, and so must outlive and be apart from the database"),
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
        "Unix socket for the operator's commands, mode 0600; admin.sock in state_dir unless given, none if empty",
    ),
    fixed("receipt_key", Some("keys/receipt.pem"), "signs receipts (PKCS#8 PEM, mode 0600)"),
    fixed("receipt_alg", Some("ES256"), "ES256, ES384 or EdDSA; must fit the receipt key"),
    fixed("checkpoint_key", Some("keys/checkpoint.pem"), "signs C2SP checkpoints (Ed25519)"),
    fixed("operator_key", Some("keys/operator.pem"), "signs registration policies"),
    reloading("policy", Some("policy.toml"), "the registration policy to publish"),
    reloading("tls_cert", None, "certificate chain, PEM"),
    reloading("tls_key", None, "its private key, PEM"),
    fixed("plaintext", Some("false"), "serve without TLS on an address that is not loopback"),
    reloading(
        "tokens_file",
        None,
        "bearer tokens, one `name token` a line, each with a rate bucket of its own; see help access",
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
        "origins of web pages that may read what is not public; * is every one",
    ),
    reloading("token_required", Some("false"), "turn away registrations without a token (401)"),
    reloading("trusted_proxies", Some("[]"), "addresses whose Forwarded headers name the client"),
    reloading("write_rate", Some("500"), "registrations a client may make a second, averaged"),
    reloading("write_burst", Some("2000"), "registrations a client may make at once"),
    reloading("read_rate", Some("2000"), "reads a client may make a second, averaged"),
    reloading("read_burst", Some("8000"), "reads a client may make at once"),
    reloading(
        "issuer_rate",
        None,
        "registrations a second for one issuer, at all processes of the log; no limit unless set",
    ),
    reloading(
        "issuer_rates",
        None,
        "issuers with a rate of their own, over issuer_rate: { \"https://issuer.example\" = 500 }",
    ),
    reloading("max_statement_bytes", Some("8388608"), "largest statement; never more than the policy admits"),
    reloading("max_batch_bytes", Some("16777216"), "largest batch of statements; 33554432 at most"),
    fixed("connections", Some("4096"), "connections open at one time; more wait"),
    fixed("inflight_bytes", Some("67108864"), "bodies being received at once; 503 beyond"),
    fixed("queue_entries", Some("16384"), "statements waiting to be sequenced; 503 beyond"),
    fixed("inbox_entries", Some("32768"), "accepted statements not yet in the log; 503 beyond"),
    fixed("inbox_bytes", Some("4294967296"), "their bytes; 503 beyond"),
    fixed("inbox_issuer_entries", Some("8192"), "those of one issuer; 503 beyond"),
    fixed("inbox_issuer_bytes", Some("1073741824"), "their bytes; 503 beyond"),
    fixed("linger_ms", Some("2"), "how long a busy sequencer waits to fill a batch, 0 to 5"),
    fixed("answer_within_ms", Some("1000"), "after this a registration is answered 202"),
    fixed("witness_policy", None, "witnesses and their quorum (C2SP tlog-policy); nobody cosigns unless set"),
    fixed(
        "witness_interval_seconds",
        Some("60"),
        "how often witnesses cosign a checkpoint that stays the newest",
    ),
    fixed("retention_sweep_seconds", Some("3600"), "how often entries past their retention are looked for"),
    fixed("fsck_rate", Some("500"), "rows of the log that are checked again in a second; 0 checks none"),
    fixed("fsck_every_seconds", Some("3600"), "the pause between one check of the whole log and the next"),
    fixed(
        "min_free_bytes",
        Some("67108864"),
        "bytes that must be free for the database file and state_dir; with fewer, registration is refused (503)",
    ),
    fixed(
        "db_migrate",
        Some("true"),
        "bring the tables of PostgreSQL up to date at the start; false: `tabellion log migrate` does, as their owner",
    ),
    fixed(
        "any_filesystem",
        Some("false"),
        "keep SQLite on a network or overlay file system all the same: one connection, slower commits",
    ),
    reloading("log_level", Some("info"), "error, warn, info, debug or trace"),
    fixed("log_format", Some("text"), "text or json"),
    fixed("log_url", Some("http://127.0.0.1:7390"), "the service that client commands speak to"),
    fixed("trust", None, "the trust file that `verify` believes"),
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
