//! Proofs of one run: sound ones, and one for each reason to refuse.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use lookup_tree::{BlindCode, IndexQuestion, LeafRange, Posting, PostingPrefix, ProofPart, ProofRefused};
use lookup_tree::{RunId, RunProof, RunQuestion, RunSummary, ScheduledRun, TermKey, erase};
use merkle::{Hash, LeafIndex};
use serde_json::{Value, json};

use super::Cases;
use crate::support::{agent, agents_in_turn, hash_of_part, posting};

/// A run, and a question about it.
struct Asked {
    postings: Vec<Posting>,
    run: ScheduledRun,
    keys: Vec<TermKey>,
    leaves: LeafRange,
}

impl Asked {
    fn new(postings: Vec<Posting>, size: u64, keys: &[u64], leaves: (u64, u64)) -> Self {
        let run = ScheduledRun { id: RunId::TAIL, leaves: LeafRange::new(0, size) };
        let keys = keys.iter().map(|number| agent(*number)).collect();
        Self { postings, run, keys, leaves: LeafRange::new(leaves.0, leaves.1) }
    }

    fn summary(&self) -> RunSummary {
        RunSummary::of(&self.postings).unwrap()
    }

    fn question(&self) -> RunQuestion {
        self.question_with(self.summary())
    }

    fn question_with(&self, summary: RunSummary) -> RunQuestion {
        let question = IndexQuestion::new(self.keys.clone(), self.leaves).unwrap();
        question.for_run(&self.run, &summary).unwrap()
    }

    fn prove(&self) -> RunProof {
        let Ok(proof) = RunProof::prove(&self.postings[..], &self.question());
        proof
    }

    fn accepted(&self, why: &str) -> Value {
        self.case("accept", why, &self.prove().encode(), self.summary().root)
    }

    /// A proof of another tree, with the root that this tree would have.
    fn refused(&self, reason: &str, why: &str, tree: ProofPart) -> Value {
        let root = hash_of_part(&tree);
        self.case(reason, why, &RunProof { tree }.encode(), root)
    }

    fn case(&self, expected: &str, why: &str, proof: &[u8], root: Hash) -> Value {
        let decoded = RunProof::decode(proof);
        let (decided, found) = match decoded.map(|proof| proof.verify(&self.question(), root)) {
            Err(_) => ("malformed", None),
            Ok(Err(refused)) => (name(&refused), None),
            Ok(Ok(found)) => ("accept", Some(found)),
        };
        assert_eq!(decided, expected, "{why}");
        let [start, end] = [self.leaves.start, self.leaves.end].map(LeafIndex::get);
        let [run_start, run_end] = [self.run.leaves.start, self.run.leaves.end].map(LeafIndex::get);
        let hex = |posting: &Posting| HEXLOWER.encode(&posting.to_bytes());
        json!({
            "why": why,
            "keys": self.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "leaves": [start, end],
            "run_leaves": [run_start, run_end],
            "blind": self.summary().blind,
            "root": root.to_string(),
            "proof": HEXLOWER.encode(proof),
            "expected": expected,
            "found": found.map(|found| found.iter().map(hex).collect::<Vec<_>>()),
        })
    }
}

pub fn proofs() -> Cases {
    let mut cases = sound();
    cases.extend(refused());
    cases.extend(malformed());
    cases
}

/// The run of the published head; agent-3 is at leaves 3, 8, 13 …
fn forty(keys: &[u64], leaves: (u64, u64)) -> Asked {
    Asked::new(agents_in_turn(0, 40, 5), 40, keys, leaves)
}

/// Two terms for each entry, one of which no other entry has, and two blind entries.
fn blind(keys: &[u64], leaves: (u64, u64)) -> Asked {
    let postings = [agents_in_turn(0, 200, 3), agents_in_turn(0, 200, 1_000)].concat();
    let postings: BTreeSet<Posting> = postings.into_iter().collect();
    let erased = BTreeSet::from([LeafIndex::new(7), LeafIndex::new(150)]);
    let mut postings = erase(&postings.into_iter().collect::<Vec<_>>(), &erased);
    postings.push(Posting::blind(BlindCode::Unreadable, LeafIndex::new(11)));
    postings.sort_unstable();
    Asked::new(postings, 200, keys, leaves)
}

fn sound() -> Cases {
    let one_agent = |leaves, asked| Asked::new(agents_in_turn(0, leaves, 1), leaves, &[0], asked);
    Cases::from([
        ("present", forty(&[3], (0, 40)).accepted("all leaves of a term")),
        ("present-in-part", forty(&[3], (10, 30)).accepted("the leaves of a term in a part of the run")),
        ("one-leaf", forty(&[3], (13, 14)).accepted("is this entry of this agent?")),
        ("two-keys", forty(&[1, 3], (0, 40)).accepted("two keys: an interval for each")),
        ("absent", forty(&[17], (0, 40)).accepted("no entry has the term")),
        ("absent-in-part", forty(&[3], (14, 18)).accepted("the term is there, and not in these leaves")),
        ("beyond-the-run", forty(&[3], (30, 4_000)).accepted("a question is cut to the leaves of the run")),
        ("empty-run", Asked::new(vec![], 40, &[3], (0, 40)).accepted("a run without postings")),
        ("whole", one_agent(64, (0, 64)).accepted("a subtree whose postings are all in the question")),
        ("whole-in-part", one_agent(100, (0, 90)).accepted("one whole subtree, and one that is not")),
        ("blind", blind(&[1], (0, 200)).accepted("blind entries are listed in every answer")),
        ("blind-in-part", blind(&[1], (8, 60)).accepted("the blind entries of these leaves only")),
        ("blind-only", blind(&[], (0, 200)).accepted("a question without keys is one about blind entries")),
        ("unique", blind(&[42], (0, 200)).accepted("a term that one entry has")),
    ])
}

fn refused() -> Cases {
    let part = forty(&[3], (10, 30));
    let whole = Asked::new(agents_in_turn(0, 64, 1), 64, &[0], (0, 64));
    let root = part.summary().root;
    let other_root = RunSummary::of(&agents_in_turn(0, 41, 5)).unwrap().root;
    let long = |leaves| Asked::new(agents_in_turn(0, 192, 3), 192, &[1], leaves);
    let (long, shorter) = (long((0, 192)), long((0, 60)).prove());
    let other_key = forty(&[1], (10, 30)).prove();
    let blind = blind(&[1], (0, 200));
    let hidden_blind = {
        let question = blind.question_with(RunSummary { blind: 0, ..blind.summary() });
        let Ok(proof) = RunProof::prove(&blind.postings[..], &question);
        proof.encode()
    };
    let ordered = agents_in_turn(0, 17, 5);
    let mut turned = ordered[..16].to_vec();
    turned.swap(3, 4);
    let mut doubled = ordered[..15].to_vec();
    doubled.push(doubled[14]);
    let (left, right) = children(&part.prove().tree);
    let twenty = Asked::new(agents_in_turn(0, 20, 5), 20, &[0, 1, 2, 3, 4], (0, 20));
    let (in_left, in_right) = children(&twenty.prove().tree);
    let swapped = inner(prefix(&twenty), in_right, in_left);
    let full = PostingPrefix::of(posting(agent(3), 3), 192);
    let deeper = inner(PostingPrefix::of(posting(agent(3), 3), 100), left.clone(), right);
    let beside = inner(prefix(&part), deeper.clone(), deeper);
    let bucket = |postings: &[Posting]| ProofPart::Bucket(postings.to_vec());
    Cases::from([
        (
            "all-hidden",
            part.case(
                "hidden-meets-question",
                "the root alone shows nothing",
                &RunProof { tree: ProofPart::Hidden(root) }.encode(),
                root,
            ),
        ),
        (
            "shortened",
            long.case(
                "hidden-meets-question",
                "the proof of fewer leaves",
                &shorter.encode(),
                long.summary().root,
            ),
        ),
        (
            "other-key",
            part.case("hidden-meets-question", "the proof of another term", &other_key.encode(), root),
        ),
        (
            "hidden-blind",
            blind.case(
                "hidden-meets-question",
                "blind entries are left out",
                &hidden_blind,
                blind.summary().root,
            ),
        ),
        (
            "other-root",
            part.case("root-mismatch", "the proof of another head", &part.prove().encode(), other_root),
        ),
        (
            "dropped",
            part.case(
                "root-mismatch",
                "a posting is missing in a bucket",
                &RunProof { tree: dropped(part.prove().tree) }.encode(),
                root,
            ),
        ),
        ("children-swapped", twenty.refused("posting-outside-place", "left and right are swapped", swapped)),
        (
            "prefix-elsewhere",
            part.refused("prefix-outside-place", "an inner node that belongs elsewhere", beside),
        ),
        (
            "prefix-of-all-bits",
            part.refused(
                "prefix-outside-place",
                "no bit is left for the children",
                inner(full, left, ProofPart::Bucket(vec![])),
            ),
        ),
        ("bucket-disorder", part.refused("out-of-order", "a bucket that is not in order", bucket(&turned))),
        ("bucket-double", part.refused("out-of-order", "a posting twice", bucket(&doubled))),
        ("bucket-of-17", part.refused("bucket-too-large", "17 postings are an inner node", bucket(&ordered))),
        (
            "whole-of-16",
            whole.refused(
                "whole-too-small",
                "16 postings are a bucket",
                ProofPart::Whole(agents_in_turn(0, 16, 1)),
            ),
        ),
        (
            "whole-with-others",
            part.refused(
                "whole-outside-question",
                "a list with postings of other terms",
                ProofPart::Whole(part.postings.clone()),
            ),
        ),
        (
            "whole-beyond-leaves",
            Asked::new(agents_in_turn(0, 64, 1), 64, &[0], (0, 63)).refused(
                "whole-outside-question",
                "a list with a leaf after the question",
                ProofPart::Whole(agents_in_turn(0, 64, 1)),
            ),
        ),
    ])
}

fn malformed() -> Cases {
    let part = forty(&[3], (10, 30));
    let root = part.summary().root;
    let case =
        |why, hex: String| part.case("malformed", why, &HEXLOWER.decode(hex.as_bytes()).unwrap(), root);
    let (sound, key) = (HEXLOWER.encode(&part.prove().encode()), "07".repeat(16));
    let hash = "00".repeat(32);
    Cases::from([
        ("no-bytes", case("no item", String::new())),
        ("cut-off", case("the last byte is missing", sound[..sound.len() - 2].to_owned())),
        ("trailing", case("a byte after the proof", format!("{sound}00"))),
        ("long-head", case("an array head that is not in its shortest form", format!("9804{}", &sound[2..]))),
        ("hash-of-31", case("a hash has 32 bytes", format!("581f{}", "00".repeat(31)))),
        ("text", case("a part is a byte string or an array", "60".to_owned())),
        ("kind-2", case("lists are of kind 0 or 1", "820240".to_owned())),
        ("array-of-3", case("no part has three members", format!("8300405820{hash}"))),
        ("bucket-of-25-bytes", case("postings have 24 bytes", format!("82005819{}", "00".repeat(25)))),
        (
            "prefix-too-long",
            case(
                "a prefix has as many bytes as hold its bits",
                format!("8408420000{0}{0}", format!("5820{hash}")),
            ),
        ),
        (
            "prefix-too-deep",
            case(
                "a prefix has at most 192 bits",
                format!("8418c15819{1}{0}{0}", format!("5820{hash}"), "00".repeat(25)),
            ),
        ),
        (
            "prefix-rest",
            case("bits after the prefix are zero", format!("84044108{0}{0}", format!("5820{hash}"))),
        ),
        ("whole-cut", case("a group without its leaves", format!("820151{key}02"))),
        ("whole-empty-group", case("a group without leaves", format!("820151{key}00"))),
        (
            "whole-long-number",
            case("a number that is not in its shortest form", format!("820153{key}018000")),
        ),
        ("whole-same-leaf", case("a leaf twice in a group", format!("820153{key}020100"))),
        ("whole-key-twice", case("two groups of one key", format!("82015824{key}0100{key}0101"))),
    ])
}

fn inner(prefix: PostingPrefix, left: ProofPart, right: ProofPart) -> ProofPart {
    ProofPart::Inner { prefix, left: Box::new(left), right: Box::new(right) }
}

fn prefix(asked: &Asked) -> PostingPrefix {
    match asked.prove().tree {
        ProofPart::Inner { prefix, .. } => prefix,
        _ => panic!("the root is an inner node"),
    }
}

fn children(part: &ProofPart) -> (ProofPart, ProofPart) {
    match part {
        ProofPart::Inner { left, right, .. } => ((**left).clone(), (**right).clone()),
        _ => panic!("the root is an inner node"),
    }
}

/// The tree without the first posting of the first bucket that has any.
fn dropped(part: ProofPart) -> ProofPart {
    match part {
        ProofPart::Bucket(postings) => ProofPart::Bucket(postings.into_iter().skip(1).collect()),
        ProofPart::Inner { prefix, left, right } if matches!(*left, ProofPart::Hidden(_)) => {
            inner(prefix, *left, dropped(*right))
        }
        ProofPart::Inner { prefix, left, right } => inner(prefix, dropped(*left), *right),
        part => part,
    }
}

fn name(refused: &ProofRefused) -> &'static str {
    match refused {
        ProofRefused::HiddenMeetsQuestion(_) => "hidden-meets-question",
        ProofRefused::PrefixOutsidePlace(_) => "prefix-outside-place",
        ProofRefused::PostingOutsidePlace(_) => "posting-outside-place",
        ProofRefused::OutOfOrder(_) => "out-of-order",
        ProofRefused::BucketTooLarge(_) => "bucket-too-large",
        ProofRefused::WholeTooSmall(_) => "whole-too-small",
        ProofRefused::WholeOutsideQuestion(_) => "whole-outside-question",
        ProofRefused::RootMismatch { .. } => "root-mismatch",
    }
}
