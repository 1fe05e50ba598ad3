//! `tabellion issuer`: the keys with which agents, verifiers and recorders sign their statements.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use scitt::{Algorithm, Signer};

use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::keyfile::{self, KeyNames};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion issuer new -o issuer.pem --alg EdDSA")]
pub enum Issuer {
    /// Create a key that only its owner can read
    #[command(before_help = "example:  tabellion issuer new -o issuer.pem --alg EdDSA")]
    New {
        /// The output file (PKCS#8 PEM)
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// EdDSA, ES256, ES384 or ES512
        #[arg(long, default_value = "ES256", value_parser = algorithm)]
        alg: Algorithm,
    },
    /// Show a key's identifiers: kid, did:key
    #[command(before_help = "example:  tabellion issuer show issuer.pem")]
    Show {
        /// A key file, secret or public, or a did:key
        key: String,
    },
    /// Write the public key
    #[command(before_help = "example:  tabellion issuer export issuer.pem -o issuer.pub.pem")]
    Export {
        /// A key file, secret or public, or a did:key
        key: String,
        /// The format: pem, cose, did-key, did-jwk or jwk
        #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
        format: Format,
        /// The output file
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
}

/// Encodings of a public key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// SubjectPublicKeyInfo, PEM.
    #[default]
    Pem,
    /// COSE_Key (RFC 9052, 7) with its kid.
    Cose,
    /// did:key.
    DidKey,
    /// did:jwk.
    DidJwk,
    /// JSON Web Key (RFC 7517) with its RFC 7638 thumbprint for `kid`: what a gateway's `[[agent]]` names.
    Jwk,
}

impl Issuer {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::New { output, alg } => {
                let key = keyfile::generate(&output, alg)?;
                context.console.result(&KeyNames::of(key.public_key(), Some(&output)))
            }
            Self::Show { key } => context.console.result(&KeyNames::of(&keyfile::read_public(&key)?, None)),
            Self::Export { key, format, output } => export(&key, format, &output),
        }
    }
}

/// Writes a public key in the given encoding. `tabellion key export` uses it, too.
pub fn export(key: &str, format: Format, output: &std::path::Path) -> Result<(), Failure> {
    let key = keyfile::read_public(key)?;
    let bytes = match format {
        Format::Pem => key.to_spki_pem().into_bytes(),
        Format::Cose => key.to_cose_key(Some(&key.thumbprint()), Some(Algorithm::default_for(key.curve()))),
        Format::DidKey => format!("{}\n", key.did_key()).into_bytes(),
        Format::DidJwk => format!("{}\n", key.did_jwk()).into_bytes(),
        Format::Jwk => {
            let mut jwk = key.to_jwk().to_value();
            jwk["kid"] = key.jwk_thumbprint().into();
            format!("{jwk}\n").into_bytes()
        }
    };
    files::write(output, &bytes, Access::Ordinary, Existing::Keep)
}

/// Parses an algorithm's name, ignoring case.
pub fn algorithm(name: &str) -> Result<Algorithm, String> {
    Algorithm::from_name(name)
        .or_else(|| Algorithm::from_name(&name.to_ascii_uppercase()))
        .ok_or_else(|| format!("{name} is not an algorithm we sign with: EdDSA, ES256, ES384, ES512"))
}

/// The failure of a command that needs a key and got none, `no-key`.
pub fn no_key() -> Failure {
    Failure::new(Exit::Usage, "no-key", "no key to sign with").hint("tabellion issuer new -o issuer.pem")
}
