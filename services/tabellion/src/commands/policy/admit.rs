//! `tabellion policy admit`: adds an issuer's key or certificate to a policy file. Everything else in the file stays as it
//! was written, and the file is only replaced if the policy is still sound.
//!
//! Not here: the signature of the next revision (`policy publish`).

use std::path::PathBuf;

use clap::Args;
use registration::Policy as RegistrationPolicy;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

use super::unsound;
use crate::console::{Exit, Failure, files, members, safe, shell};
use crate::context::Context;
use crate::keyfile;

/// The beginning of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion policy admit issuer.pub.pem --iss https://ci.example")]
pub struct Admit {
    /// The issuer's public key (a file, a did:key or a did:jwk), or the certificate (PEM) of its authority
    key: String,
    /// The issuer [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// Also add the issuer to the issuers of this content type
    #[arg(long, value_name = "TYPE")]
    content_type: Vec<String>,
    /// The policy (TOML)
    #[arg(long, value_name = "FILE", default_value = "policy.toml")]
    policy: PathBuf,
    /// The revision of the changed policy [default: one more than in the file]
    #[arg(long, value_name = "NUMBER")]
    revision: Option<i64>,
}

impl Admit {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let text = files::read_text(&self.policy)?;
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            Failure::new(Exit::Failure, "policy", format!("{} is not TOML", self.policy.display()))
                .fact("because", error.message())
        })?;
        let iss = self.admit(&mut document)?;
        for content_type in &self.content_type {
            self.admit_type(&mut document, content_type, &iss)?;
        }
        let is_changed = document.to_string() != text;
        if is_changed {
            self.raise_revision(&mut document)?;
        }
        let edited = document.to_string();
        let policy =
            RegistrationPolicy::from_toml(&edited).map_err(|mistakes| unsound(&self.policy, mistakes))?;
        if is_changed {
            files::replace_keeping_access(&self.policy, edited.as_bytes())?;
        }
        let (revision, file) = (policy.contents().revision, self.policy.display().to_string());
        let mut types = policy.contents().types.iter();
        let is_registered = types.any(|rule| rule.issuers.iter().any(|pattern| pattern.fits(&iss)));
        let json = members! { iss: &iss, policy: &file, revision, changed: is_changed };
        context.console.print(&json, |out| {
            let what = if is_changed { "admitted" } else { "already in" };
            writeln!(out, "{what:11}{}\n{:11}{}, revision {revision}", safe(&iss), "policy", safe(&file))
        })?;
        if !is_registered {
            context.console.note("no content type lists this issuer yet: --content-type TYPE");
        }
        let file = shell::path(&self.policy);
        context.console.note(format!("to publish it: tabellion policy publish {file} --key OPERATOR.pem"));
        Ok(())
    }

    /// Adds the key or the certificate, and returns the issuer's name.
    fn admit(&self, document: &mut DocumentMut) -> Result<String, Failure> {
        if !self.key.starts_with("did:")
            && let text = String::from_utf8_lossy(&files::read(self.key.as_ref())?).into_owned()
            && text.contains(CERTIFICATE)
        {
            let iss = self.iss.clone().ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    "usage",
                    "a certificate needs --iss: the issuer that it may speak for",
                )
            })?;
            return self.admit_certificate(document, &text, &iss).map(|()| iss);
        }
        let did = keyfile::read_public(&self.key)?.did_key();
        let iss = self.iss.clone().unwrap_or_else(|| did.clone());
        if iss == did {
            self.admit_did_key(document, &did)?;
        } else {
            self.admit_key(document, &iss, &did)?;
        }
        Ok(iss)
    }

    fn admit_key(&self, document: &mut DocumentMut, iss: &str, did: &str) -> Result<(), Failure> {
        let issuers = self.tables(document, "issuer")?;
        let place = issuers.iter().position(|issuer| text_of(issuer.get("iss")) == Some(iss));
        match place.and_then(|place| issuers.get_mut(place)) {
            Some(issuer) => {
                let keys = issuer.get_mut("keys").and_then(Item::as_array_mut);
                push(keys.ok_or_else(|| self.unexpected("issuer.keys"))?, did);
            }
            None => {
                let mut issuer = Table::new();
                issuer.insert("iss", iss.into());
                issuer.insert("keys", list([did]));
                issuers.push(issuer);
            }
        }
        Ok(())
    }

    /// Adds a key whose name is the issuer. Nothing is to be added if the policy admits all of them.
    fn admit_did_key(&self, document: &mut DocumentMut, did: &str) -> Result<(), Failure> {
        let section = document.entry("did").or_insert_with(|| Item::Table(Table::new()));
        let section = section.as_table_like_mut().ok_or_else(|| self.unexpected("did"))?;
        let keys = section.entry("key").or_insert_with(|| list([]));
        match keys.as_value_mut() {
            Some(Value::String(_)) => Ok(()),
            Some(Value::Array(keys)) => {
                push(keys, did);
                Ok(())
            }
            _ => Err(self.unexpected("did.key")),
        }
    }

    fn admit_certificate(&self, document: &mut DocumentMut, pem: &str, iss: &str) -> Result<(), Failure> {
        let anchors = self.tables(document, "anchor")?;
        let is_listed = |anchor: &Table| {
            let roots = anchor.get("roots").and_then(Item::as_array);
            roots.is_some_and(|roots| {
                roots.iter().any(|root| root.as_str().is_some_and(|root| root.trim() == pem.trim()))
            })
        };
        let place = anchors.iter().position(is_listed);
        match place.and_then(|place| anchors.get_mut(place)) {
            Some(anchor) => {
                let issuers = anchor.entry("issuers").or_insert_with(|| list([]));
                push(issuers.as_array_mut().ok_or_else(|| self.unexpected("anchor.issuers"))?, iss);
            }
            None => {
                let mut anchor = Table::new();
                anchor.insert("name", iss.into());
                anchor.insert("roots", list([pem]));
                anchor.insert("issuers", list([iss]));
                anchors.push(anchor);
            }
        }
        Ok(())
    }

    fn admit_type(&self, document: &mut DocumentMut, content_type: &str, iss: &str) -> Result<(), Failure> {
        let types = self.tables(document, "type")?;
        let mut found = false;
        for rule in types.iter_mut().filter(|rule| text_of(rule.get("content_type")) == Some(content_type)) {
            let issuers = rule.entry("issuers").or_insert_with(|| list([]));
            push(issuers.as_array_mut().ok_or_else(|| self.unexpected("type.issuers"))?, iss);
            found = true;
        }
        match found {
            true => Ok(()),
            false => Err(Failure::new(
                Exit::NotFound,
                "policy",
                format!("{} admits no {content_type}", self.policy.display()),
            )),
        }
    }

    fn raise_revision(&self, document: &mut DocumentMut) -> Result<(), Failure> {
        let item = document.get_mut("revision").and_then(Item::as_value_mut);
        let value = item.ok_or_else(|| self.unexpected("revision"))?;
        let now = value.as_integer().ok_or_else(|| self.unexpected("revision"))?;
        let decor = value.decor().clone();
        *value = Value::from(self.revision.unwrap_or(now.saturating_add(1)));
        *value.decor_mut() = decor;
        Ok(())
    }

    /// Returns the tables `[[name]]`, which are created if there are none.
    fn tables<'d>(
        &self,
        document: &'d mut DocumentMut,
        name: &str,
    ) -> Result<&'d mut ArrayOfTables, Failure> {
        let item = document.entry(name).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        item.as_array_of_tables_mut().ok_or_else(|| self.unexpected(name))
    }

    /// The failure for a part of the file that this command cannot edit.
    fn unexpected(&self, key: &str) -> Failure {
        Failure::new(Exit::Failure, "policy", format!("{} cannot be edited", self.policy.display()))
            .fact(key, "is written in another way than this command expects")
    }
}

fn text_of(item: Option<&Item>) -> Option<&str> {
    item.and_then(Item::as_str)
}

fn list<const N: usize>(texts: [&str; N]) -> Item {
    Item::Value(Value::Array(Array::from_iter(texts)))
}

/// Adds a text to a list that lacks it. An entry may also be a table with the text as its key.
fn push(list: &mut Array, text: &str) {
    let is_listed = |value: &Value| {
        let key = value.as_inline_table().and_then(|table| table.get("key"));
        key.unwrap_or(value).as_str() == Some(text)
    };
    if !list.iter().any(is_listed) {
        list.push(text);
    }
}
