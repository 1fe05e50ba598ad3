//! The image: its layout follows the image specification, and its program runs as its configuration says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use black_box::cli::Folder;
use black_box::{Connection, OwnedChild, free_address};
use serde_json::Value;

use crate::{file, release, run};

/// Runs in namespaces of its own: mounts the root read-only, gives the program two writable folders and `/proc`, and starts it
/// as the image's user. The libraries of this machine are mounted for the dynamic program of the tests; a release has none.
const START: &str = r#"
set -e
root=$1 user=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for folder in lib lib64 usr/lib; do
  [ ! -d "$root/$folder" ] || mount --rbind "/$folder" "$root/$folder"
done
mkdir -p "$root/proc"
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o uid=$user,gid=$user,mode=700 state "$root/var/lib/tabellion"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
exec env -i /usr/bin/unshare --root="$root" --wd=/var/lib/tabellion --setgid="$user" --setuid="$user" "$@"
"#;

#[test]
fn the_program_of_the_image_is_ready_as_an_unprivileged_user_on_a_read_only_root() {
    let folder = Folder::new();
    let layout = unpacked(&folder, &file(&release(&folder, "image"), "-oci.tar"));
    let manifest = manifest(&layout);
    let config = json(&blob(&layout, &manifest["config"]));
    let user = config["config"]["User"].as_str().unwrap().split(':').next().unwrap().to_owned();
    assert_ne!(user, "0");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/tabellion");
    let root = root(&folder, &layout, &manifest);
    assert_eq!(entries(&root.join("usr/bin")), ["tabellion"], "the image has the program alone");

    let admin = free_address().to_string();
    let serve = ["serve", "--dev", "--json", "--listen", "127.0.0.1:0", "--admin-listen", &admin];
    let (process, ready) = started(&root, &user, &serve);
    assert!(ready.is_object(), "{ready}");
    assert_eq!(Connection::to(&admin).get("/readyz").status, 200);
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let uids: BTreeSet<&str> =
        status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap().split_whitespace().collect();
    assert_eq!(uids, BTreeSet::from([user.as_str()]));
}

#[test]
fn the_verification_service_of_the_image_runs_javascript_and_says_what_it_lacks() {
    let folder = Folder::new();
    let layout = unpacked(&folder, &file(&release(&folder, "image"), "-oci.tar"));
    let manifest = manifest(&layout);
    let config = json(&blob(&layout, &manifest["config"]));
    let user = config["config"]["User"].as_str().unwrap().split(':').next().unwrap().to_owned();
    let root = root(&folder, &layout, &manifest);
    let place = root.join("etc/tabellion");
    fs::create_dir_all(&place).unwrap();
    let key = place.join("verifier.key");
    let new = ["issuer", "new", "--alg", "EdDSA", "-o", key.to_str().unwrap()];
    folder.run(&new).must_end_with(0);
    let owner = Some(user.parse().unwrap());
    chown(&key, owner, owner).unwrap();
    let settings = "listen = \"127.0.0.1:0\"\nstate = \"/var/lib/tabellion\"\nkey = \"verifier.key\"\n\
                    [log]\nurl = \"http://127.0.0.1:9\"\n";
    fs::write(place.join("verification.toml"), settings).unwrap();

    let serve = ["vrf", "serve", "--json", "--config", "/etc/tabellion/verification.toml"];
    let (_process, ready) = started(&root, &user, &serve);
    let engines = Connection::to(ready["url"].as_str().unwrap()).get("/v1/engines").json();
    assert_eq!(engines["tiers"], serde_json::json!([0, 1, 2]), "{engines}");
    let available = engines["engines"].as_array().unwrap();
    assert!(available.len() == 1 && available[0]["runs"] == "JavaScript functions", "{engines}");
    assert!(engines["missing"].to_string().contains("bwrap is missing"), "{engines}");
}

/// Starts the program with these arguments, and returns it with the line that it prints once it serves.
fn started(root: &Path, user: &str, arguments: &[&str]) -> (OwnedChild, Value) {
    for library in ["lib", "lib64", "usr/lib"] {
        if Path::new("/").join(library).is_dir() {
            fs::create_dir_all(root.join(library)).unwrap();
        }
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", START, "start"]).arg(root).arg(user);
    // The process is the program in the end: the shell, `env` and `unshare` each replace themselves by the next.
    command.arg("/usr/bin/tabellion").args(arguments);
    let child = command.stdout(Stdio::piped()).spawn().expect("unshare: the test runs as root");
    let mut process = OwnedChild(child);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    (process, ready)
}

/// Unpacks the layout, and compares every blob with its name.
fn unpacked(folder: &Folder, image: &Path) -> PathBuf {
    let layout = folder.path("layout");
    fs::create_dir(&layout).unwrap();
    run(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout));
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let blobs = layout.join("blobs/sha256");
    for name in entries(&blobs) {
        assert!(run(Command::new("sha256sum").arg(blobs.join(&name))).starts_with(&name));
    }
    layout
}

fn manifest(layout: &Path) -> Value {
    let index = json(&layout.join("index.json"));
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1);
    json(&blob(layout, &index["manifests"][0]))
}

/// Unpacks the only layer, whose uncompressed digest the configuration states.
fn root(folder: &Folder, layout: &Path, manifest: &Value) -> PathBuf {
    let root = folder.path("root");
    fs::create_dir(&root).unwrap();
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let layer = folder.path("layer.tar");
    fs::copy(blob(layout, &layers[0]), folder.path("layer.tar.gz")).unwrap();
    run(Command::new("gzip").arg("-d").arg(folder.path("layer.tar.gz")));
    let config = json(&blob(layout, &manifest["config"]));
    let stated = config["rootfs"]["diff_ids"][0].as_str().unwrap().trim_start_matches("sha256:");
    assert!(run(Command::new("sha256sum").arg(&layer)).starts_with(stated));
    run(Command::new("tar").args(["-xpf"]).arg(&layer).arg("-C").arg(&root));
    root
}

/// Returns the file of a descriptor, whose size must be right.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = layout.join("blobs/sha256").join(digest);
    assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap());
    path
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
