//! What cargo knows of this workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The workspace with everything it depends on.
pub struct Workspace {
    /// Our own crates.
    pub members: Vec<Member>,
    /// Everything: ours and others'.
    pub packages: Vec<Package>,
    nodes: BTreeMap<String, Node>,
}

/// A crate of ours.
pub struct Member {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// What it depends on outside tests, by name.
    pub dependencies: BTreeSet<String>,
    /// Its Cargo.toml.
    pub manifest: toml::Table,
}

/// A crate, as `cargo metadata` tells it.
#[derive(Clone, Deserialize)]
pub struct Package {
    id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An SPDX expression.
    pub license: Option<String>,
    /// Where it came from; nothing for our own.
    pub source: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Clone, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
    features: BTreeSet<String>,
}

#[derive(Clone, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Clone, Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

impl Workspace {
    /// Asks cargo, for every platform: what only others need is downloaded unless `cargo fetch` did.
    pub fn read() -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--locked"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
        let ours =
            metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
        Self {
            members: ours.map(Member::read).collect(),
            nodes: metadata.resolve.nodes.iter().map(|node| (node.id.clone(), node.clone())).collect(),
            packages: metadata.packages,
        }
    }

    /// The member of that name.
    pub fn member(&self, name: &str) -> &Member {
        self.members.iter().find(|member| member.name == name).unwrap()
    }

    /// Those names that are members.
    pub fn members_among(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        self.members.iter().map(|member| member.name.clone()).filter(|name| names.contains(name)).collect()
    }

    /// The names of all that a member depends on, directly or not, outside tests and build scripts.
    pub fn everything_below(&self, name: &str) -> BTreeSet<String> {
        let package =
            self.packages.iter().find(|package| package.name == name && package.source.is_none()).unwrap();
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![package.id.clone()]);
        while let Some(id) = waiting.pop() {
            let edges = self.nodes[&id].deps.iter();
            let below = edges.filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            waiting.extend(below.map(|edge| edge.pkg.clone()).filter(|id| !seen.contains(id)));
            seen.insert(id);
        }
        self.packages
            .iter()
            .filter(|package| seen.contains(&package.id))
            .map(|package| package.name.clone())
            .collect()
    }

    /// The features that all of the workspace together turns on for a crate.
    pub fn features(&self, name: &str) -> BTreeSet<String> {
        let ids = self.packages.iter().filter(|package| package.name == name).map(|package| &package.id);
        ids.flat_map(|id| self.nodes[id].features.clone()).collect()
    }
}

impl Member {
    fn read(package: &Package) -> Self {
        let dependencies = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        Self {
            name: package.name.clone(),
            folder: package.manifest_path.parent().unwrap().to_owned(),
            dependencies: dependencies.map(|dependency| dependency.name.clone()).collect(),
            manifest: fs::read_to_string(&package.manifest_path).unwrap().parse().unwrap(),
        }
    }

    /// Whether it is there only to test the others, and so may know all of them.
    pub fn is_test(&self) -> bool {
        self.folder.starts_with(root().canonicalize().unwrap().join("tests"))
    }

    /// The dependencies in these tables of Cargo.toml, as they are written there.
    pub fn tables(&self, names: &[&str]) -> Vec<(String, toml::Value)> {
        let tables = names.iter().filter_map(|name| self.manifest.get(*name)?.as_table());
        tables.flat_map(|table| table.clone()).collect()
    }
}

/// The top folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
