//! Consistency of the pages in `docs/`: every label that the sources cite is explained in `docs/readings.md`, and
//! `docs/glossary.md` is short, sorted, and names owners that exist. Identifiers in product code use its words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::architecture::{sources, without_tests};

/// Folders whose files cite labels.
const CITING: &[&str] = &["crates", "services", "tests"];
/// Kinds of files in which labels are cited.
const EXTENSIONS: &[&str] = &["rs", "txt"];
/// Letters of labels with a hyphen, such as `V-12`.
const HYPHENATED: &str = "ACRSVX";
/// Letters of labels without a hyphen, such as `C1`.
const PLAIN: &str = "CDEGIRS";
/// Characters that can stand before or after a label. A slash or a percent sign is not among them, because labels have
/// the form of words in base64 and of percent-encoded bytes.
const SEPARATORS: &str = "()[]{}<>,;:.'\"`|";
/// Maximum number of terms in the glossary.
const MAX_TERMS: usize = 50;

/// Metaphors of our own that stand for a term of the field, with the number of identifiers that contain them: different
/// ones in each file of product code, and names of files. A number may only fall; write the new one here.
const METAPHORS: &[(&str, usize)] = &[
    ("aside", 3),
    ("asked", 78),
    ("beside", 2),
    ("came", 0),
    ("desk", 0),
    ("door", 0),
    ("doors", 0),
    ("hear", 0),
    ("heard", 0),
    ("house", 0),
    ("keeper", 7),
    ("meaning", 4),
    ("opening", 17),
    ("said", 2),
    ("shelf", 0),
    ("shown", 49),
    ("tell", 8),
    ("told", 10),
];
/// Number of names that public types of different crates share without a row in the glossary. It may only fall.
const SHARED_NAMES: usize = 38;

#[test]
fn every_label_in_the_sources_is_explained_in_the_readings() {
    let page = read("docs/readings.md");
    let explained: BTreeSet<&str> = rows(&page).flat_map(|row| row[0].split(", ")).collect();
    let mut cited: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in CITING.iter().flat_map(|folder| files(&root().join(folder))) {
        for label in labels(&fs::read_to_string(&file).unwrap()) {
            cited.entry(label).or_insert_with(|| file.clone());
        }
    }
    assert!(cited.len() > 100, "only {} labels were found", cited.len());
    let missing: Vec<_> = cited.iter().filter(|(label, _)| !explained.contains(label.as_str())).collect();
    assert!(missing.is_empty(), "docs/readings.md does not explain {missing:#?}");
}

#[test]
fn labels_are_found_in_sentences_and_not_in_encoded_text() {
    let text = "/// C3: as V-12 says (readings X-5, `E0`; R31). %C3%A9 +K06/S3/ UTF-8 P-256 V6 S-256 r7 R100";
    let expected = ["C3", "E0", "R31", "V-12", "X-5"];
    assert_eq!(labels(text).into_iter().collect::<Vec<_>>(), expected);
    let rule =
        "Tier = \"vrf-tier\", reading \"13\", section \"7\"; Id = \"aer-id\", reading \"-\", section \"6\";";
    assert_eq!(labels(rule).into_iter().collect::<Vec<_>>(), ["13"]);
    // Not written as a function here: the matrix of faults would take it for a test.
    let functions = ["r08_power_is_lost", "read"].map(|name| format!("fn {name}() {{}}")).concat();
    assert_eq!(labels(&functions).into_iter().collect::<Vec<_>>(), ["R8"]);
}

#[test]
fn the_glossary_is_short_and_sorted_and_its_owners_exist() {
    let page = read("docs/glossary.md");
    let (terms, names) = page.split_once("\n## Names at two layers\n").unwrap();
    let terms: Vec<Vec<&str>> = rows(terms).collect();
    assert!((1..=MAX_TERMS).contains(&terms.len()), "{} terms, at most {MAX_TERMS}", terms.len());
    for pair in terms.windows(2) {
        let (before, after) = (pair[0][0], pair[1][0]);
        assert!(before.to_lowercase() < after.to_lowercase(), "{after} belongs before {before}");
    }
    for row in &terms {
        assert_eq!(row.len(), 4, "{row:?} has other columns than term, definition, from, owner");
        let owners: Vec<&str> = quoted(row[3]).collect();
        assert!(!owners.is_empty(), "{} has no owner", row[0]);
        for owner in owners {
            assert!(root().join(owner).exists(), "{}: there is no {owner}", row[0]);
        }
    }
    for row in rows(names) {
        for place in quoted(row[1]) {
            assert!(root().join(place).exists(), "{}: there is no {place}", row[0]);
        }
    }
}

#[test]
fn identifiers_use_the_words_of_the_field() {
    let mut found: BTreeMap<&str, BTreeSet<(PathBuf, String)>> = BTreeMap::new();
    for file in product_sources() {
        let text = code(&fs::read_to_string(&file).unwrap());
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        for identifier in identifiers(&text).map(str::to_owned).chain([name]) {
            for word in words(&identifier) {
                if let Some((metaphor, _)) = METAPHORS.iter().find(|(metaphor, _)| *metaphor == word) {
                    found.entry(metaphor).or_default().insert((file.clone(), identifier.clone()));
                }
            }
        }
    }
    for (metaphor, most) in METAPHORS {
        let found = found.remove(metaphor).unwrap_or_default();
        assert!(
            found.len() <= *most,
            "{} identifiers contain `{metaphor}`, at most {most} may: use a word of the glossary: {found:#?}",
            found.len()
        );
    }
}

#[test]
fn public_types_share_a_name_only_if_the_glossary_says_why() {
    let page = read("docs/glossary.md");
    let (_, names) = page.split_once("\n## Names at two layers\n").unwrap();
    let explained: BTreeSet<&str> = rows(names).flat_map(|row| quoted(row[0]).collect::<Vec<_>>()).collect();
    let mut crates: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in product_sources() {
        let folder: PathBuf = file.strip_prefix(root()).unwrap().iter().take(2).collect();
        for name in public_types(&code(&fs::read_to_string(&file).unwrap())) {
            crates.entry(name).or_default().insert(folder.clone());
        }
    }
    let is_command = |of: &BTreeSet<PathBuf>| of.len() == 2 && of.contains(Path::new("services/tabellion"));
    let shared: BTreeMap<_, _> = crates
        .iter()
        .filter(|(name, of)| of.len() > 1 && !is_command(of) && !explained.contains(name.as_str()))
        .collect();
    assert!(
        shared.len() <= SHARED_NAMES,
        "{} shared names, at most {SHARED_NAMES}: {shared:#?}",
        shared.len()
    );
}

#[test]
fn identifiers_are_split_into_words() {
    let split = |identifier: &str| words(identifier).collect::<Vec<_>>();
    assert_eq!(split("last_heard"), ["last", "heard"]);
    assert_eq!(split("ToldCollateral"), ["told", "collateral"]);
    assert_eq!(split("HAS_BESIDE"), ["has", "beside"]);
    let text = code("let a_b = \"told \\\" said\"; // heard\nC3::d('\"')");
    assert_eq!(identifiers(&text).collect::<Vec<_>>(), ["let", "a_b", "C3", "d"]);
    assert_eq!(public_types("pub struct A<T>(T);\npub(crate) enum B {}\npub trait C: D {}"), ["A", "C"]);
}

/// Returns the source files of crates and services, without tests.
fn product_sources() -> Vec<PathBuf> {
    let members =
        ["crates", "services", "sdk"].iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    members.flat_map(|member| sources(&member.unwrap().path().join("src"))).collect()
}

/// Returns the code of a file: without tests, comments and the content of strings.
fn code(text: &str) -> String {
    let mut code = String::new();
    for line in without_tests(text).lines() {
        let mut rest = line.replace("\\\"", "").replace("'\"'", "");
        if let Some(comment) = rest.find("//") {
            rest.truncate(comment);
        }
        code.extend(rest.split('"').step_by(2).flat_map(|part| [part, " "]));
        code.push('\n');
    }
    code
}

fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Splits `snake_case`, `CamelCase` and `UPPER_CASE` into words in lower case.
fn words(identifier: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    let mut after_lower = false;
    for c in identifier.chars() {
        if c == '_' || (after_lower && c.is_ascii_uppercase()) {
            spaced.push(' ');
        }
        spaced.extend((c != '_').then_some(c.to_ascii_lowercase()));
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    spaced.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Returns the names of the types that a module declares as `pub`.
fn public_types(code: &str) -> Vec<String> {
    let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    let declared = code.lines().filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)));
    declared.filter_map(|rest| identifiers(rest).next()).map(str::to_owned).collect()
}

/// Returns the labels that a text cites: by name, as the reading of a rule, or as the fault in the name of a test.
fn labels(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(c));
    let named = words.filter(|word| is_label(word)).map(str::to_owned);
    let of_rules =
        text.split("reading \"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(label, _)| label);
    let of_rules =
        of_rules.filter(|label| label.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned);
    let of_tests =
        text.split("fn r").skip(1).filter_map(|rest| rest.split_once('_')).filter_map(|(number, _)| {
            let number: u32 = number.parse().ok()?;
            Some(format!("R{number}"))
        });
    named.chain(of_rules).chain(of_tests).collect()
}

/// Returns whether a word has the form of a label: a letter, perhaps a hyphen, and one or two digits.
fn is_label(word: &str) -> bool {
    let Some(letter) = word.chars().next() else { return false };
    let rest = &word[letter.len_utf8()..];
    let (letters, digits) = match rest.strip_prefix('-') {
        Some(digits) => (HYPHENATED, digits),
        None => (PLAIN, rest),
    };
    letters.contains(letter)
        && (1..=2).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the rows of the Markdown tables of a page, without their heads.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut lines = page.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let cells: Vec<&str> = lines.next()?.strip_prefix("| ").map(cells).unwrap_or_default();
            let is_head = lines.peek().is_some_and(|next| next.starts_with("|---"));
            if !cells.is_empty() && !is_head {
                return Some(cells);
            }
        }
    })
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_end_matches(" |").split(" | ").collect()
}

/// Returns the parts of a text that are in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the files of a folder and of the folders in it, of the kinds that cite labels.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if kind.is_dir() && entry.file_name() != "node_modules" && entry.file_name() != "target" {
            found.append(&mut files(&path));
        } else if kind.is_file()
            && EXTENSIONS.contains(&extension)
            && path.file_name() != Some("docs.rs".as_ref())
        {
            found.push(path);
        }
    }
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
