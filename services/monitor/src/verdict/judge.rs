//! Verification of an alarm's evidence.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use merkle::{CompactRange, EntryDigest, Hash, LeafHash, NotAHash};
use scitt::SignedStatement;
use tlog::checkpoint::Checkpoint;
use tlog::cosignature::time_of;
use tlog::key::VerifierKey;
use tlog::note::{NotVerified, Note};
use verifier::TrustStore;

use super::chain::{self, NoFork};
use super::compare::{CheckpointKeys, Join, compare, head};
use super::index::{judge_accusation, judge_head};
use super::{Verdict, VerificationResult};
use crate::alarm::{Alarm, AlarmKind};
use crate::evidence::{EntrySeen, Evidence, Sighting, TwoRootPath};
use crate::round::Outcome;

/// Length of a SHA-256 hash.
const HASH_BYTES: usize = 32;

/// Verifies an alarm's evidence with the known log keys in `known`; receipts and heads of the index with the keys in `trust`.
///
/// Without known keys, the keys in the evidence are used. These are only as trustworthy as the file: an accuser can
/// generate a key of any name and sign contradictions with it. The verdict then accuses no party. Nor does the evidence
/// tell whose keys the known ones are.
pub fn judge<'k>(
    alarm: &Alarm,
    known: impl Into<CheckpointKeys<'k>>,
    trust: Option<&TrustStore>,
) -> VerificationResult {
    let CheckpointKeys { keys: known, origin } = known.into();
    let Some(evidence) = &alarm.evidence else {
        return VerificationResult::begin()
            .ends(Verdict::OnWord, "the monitor's statement is the only evidence");
    };
    let keys = match keys(evidence, known) {
        Ok(keys) => keys,
        Err(why) => {
            let mut finding = VerificationResult::begin();
            finding.failed("log key", why);
            return finding.ends(Verdict::Wrong, "the evidence has no key that can be used");
        }
    };
    let stated = evidence.origin();
    let keys = CheckpointKeys { keys: &keys, origin: if known.is_empty() { stated } else { origin } };
    let mut finding = match evidence {
        Evidence::Contradiction { older, newer, path, .. } => {
            contradiction(older, newer, path.as_ref(), keys)
        }
        Evidence::Rollback { larger, smaller, .. } => rollback(larger, smaller, keys),
        Evidence::Checkpoint { seen, .. } => {
            checkpoint(alarm.kind, seen, CheckpointKeys { origin: origin.or(stated), ..keys })
        }
        Evidence::Served { checkpoint, path, bytes, .. } => served(checkpoint, path, bytes, keys.keys),
        Evidence::Receipts { trust: own, receipts } => {
            return super::receipts::judge(alarm.kind, own, trust, receipts);
        }
        Evidence::Index { file } => return judge_accusation(alarm, file, trust),
        Evidence::IndexHead { statement, receipt, runs } => {
            return judge_head(statement, receipt.as_deref(), runs, trust, alarm.first_seen);
        }
        Evidence::Entries { checkpoint, entries } => {
            of_entries(alarm.kind, checkpoint.as_ref(), entries, known)
        }
    };
    if let ([], [key, ..]) = (known, keys.keys) {
        let own = format!("{key} is from the evidence itself: compare it with the key that you know");
        finding.not_checked("log key", own);
        return match finding.verdict {
            Verdict::Contradiction => finding.accuses_nobody("give the log's with --key"),
            _ => finding,
        };
    }
    finding
}

fn keys(evidence: &Evidence, known: &[VerifierKey]) -> Result<Vec<VerifierKey>, String> {
    let vkey = match evidence {
        Evidence::Contradiction { vkey, .. }
        | Evidence::Rollback { vkey, .. }
        | Evidence::Checkpoint { vkey, .. }
        | Evidence::Served { vkey, .. } => vkey,
        Evidence::Receipts { .. }
        | Evidence::Index { .. }
        | Evidence::IndexHead { .. }
        | Evidence::Entries { .. } => return Ok(known.to_vec()),
    };
    match known {
        [] => vkey.parse().map(|key| vec![key]).map_err(|why| format!("{why}")),
        known => Ok(known.to_vec()),
    }
}

/// Verifies two contradictory notes; the time and source of their sightings do not matter.
fn contradiction(
    older: &Sighting,
    newer: &Sighting,
    path: Option<&TwoRootPath>,
    keys: CheckpointKeys<'_>,
) -> VerificationResult {
    let notes = [older.note.as_bytes(), newer.note.as_bytes()];
    let node = match path.map(hashes).transpose() {
        Ok(node) => node,
        Err(why) => {
            let mut finding = VerificationResult::begin();
            finding.failed("consistency", why.to_string());
            return finding.ends(Verdict::Wrong, "the evidence cannot be read");
        }
    };
    let join =
        node.as_ref().map_or(Join::Nothing, |(start, siblings)| Join::Node { start: *start, siblings });
    let finding = with_places(compare(notes, keys, join), [older, newer]);
    match finding.verdict {
        Verdict::Same | Verdict::Consistent => {
            let words = format!("the evidence does not show it: {}", finding.words);
            finding.ends(Verdict::Wrong, words)
        }
        _ => finding,
    }
}

fn rollback(larger: &Sighting, smaller: &Sighting, keys: CheckpointKeys<'_>) -> VerificationResult {
    let notes = [smaller.note.as_bytes(), larger.note.as_bytes()];
    let mut finding = with_places(compare(notes, keys, Join::Nothing), [smaller, larger]);
    let sizes: Vec<u64> = finding.heads.iter().map(|head| head.size).collect();
    let grew = matches!(sizes[..], [small, large] if small < large);
    let sound = finding.steps.iter().all(|step| step.outcome != Outcome::Failed);
    match finding.verdict {
        Verdict::Unknown | Verdict::Consistent if grew && sound => {
            finding.not_checked("order", "only the monitor states that the smaller one was shown later");
            finding.ends(
                Verdict::OnWord,
                "the log signed both; after the larger one it must not show the smaller",
            )
        }
        Verdict::Same => {
            finding.ends(Verdict::Wrong, "the evidence does not show it: both are the same tree")
        }
        _ => finding,
    }
}

/// Verifies a single note and the fault stated by the alarm's kind. Whose the keys are decides only whether the note is
/// another log's.
fn checkpoint(kind: AlarmKind, seen: &Sighting, known: CheckpointKeys<'_>) -> VerificationResult {
    let keys = known.keys;
    let mut finding = VerificationResult::begin();
    let note = match Note::parse(seen.note.as_bytes()) {
        Ok(note) => note,
        Err(why) => {
            finding.ok("note", format!("it is none: {why}"));
            return finding.ends(Verdict::OnWord, "only the monitor states that the log served it");
        }
    };
    if let Ok(checkpoint) = Checkpoint::parse_text(note.text()) {
        finding.heads.push(head(&checkpoint));
        finding = with_places(finding, [seen]);
    }
    let as_said = match (note.verify(keys), kind) {
        // A retired key is not among the known keys for this size; that it was once the log's key is the monitor's
        // word.
        (Err(NotVerified::NoKnownKey), AlarmKind::UnknownKey | AlarmKind::RetiredKey) => true,
        (Err(NotVerified::BadSignature { .. }), AlarmKind::BadSignature) => true,
        (Err(_), _) | (Ok(_), AlarmKind::UnknownKey | AlarmKind::BadSignature) => false,
        (Ok(_), AlarmKind::OtherLog) => {
            finding.heads.first().is_none_or(|head| keys.iter().all(|key| !known.is_of(key, &head.origin)))
        }
        (Ok(_), _) => true,
    };
    let signed = match note.verify(keys) {
        Ok(_) => "signed by the log's key".to_owned(),
        Err(why) => why.to_string(),
    };
    match as_said {
        true => finding.ok("signature", signed),
        false => finding.failed("signature", signed),
    }
    for line in note.signatures() {
        if let Some(time) = time_of(line) {
            finding.not_checked("cosignature", format!("{} at {}", line.name(), when(time)));
        }
    }
    match as_said {
        true => finding.ends(
            Verdict::OnWord,
            "the note is as described; only the monitor states that the log showed it then",
        ),
        false => finding.ends(Verdict::Wrong, "the note does not prove the accusation"),
    }
}

/// Verifies served bytes. If they are a whole tree's level-0 tile, its root is computed.
fn served(checkpoint: &Sighting, path: &str, bytes: &str, keys: &[VerifierKey]) -> VerificationResult {
    let mut finding = VerificationResult::begin();
    let opened = Note::parse(checkpoint.note.as_bytes()).map_err(|why| why.to_string()).and_then(|note| {
        note.verify(keys).map_err(|why| why.to_string())?;
        Checkpoint::parse_text(note.text()).map_err(|why| why.to_string())
    });
    let (signed, bytes) = match (opened, BASE64.decode(bytes.as_bytes())) {
        (Ok(signed), Ok(bytes)) => (signed, bytes),
        (Err(why), _) => {
            finding.failed("signature", why);
            return finding.ends(Verdict::Wrong, "the checkpoint is not the log's");
        }
        (_, Err(_)) => {
            finding.failed("bytes", "not base64");
            return finding.ends(Verdict::Wrong, "the evidence cannot be read");
        }
    };
    finding.heads.push(head(&signed));
    let mut finding = with_places(finding, [checkpoint]);
    finding.ok("signature", "signed by the log's key");
    match whole_tree(path, &bytes, signed.size().get()) {
        Some(root) if root == signed.root() => {
            finding.failed("bytes", "they make the tree that was signed");
            return finding.ends(Verdict::Wrong, "the evidence does not show it");
        }
        Some(root) => finding.ok("bytes", format!("they make the root {root}, which was not signed")),
        None => finding.not_checked("bytes", "more of the tree is needed to see that they are not of it"),
    }
    finding.not_checked("served", format!("only the monitor states that the log served them as {path}"));
    finding.ends(Verdict::OnWord, "the bytes that the log is said to have served differ from what it signed")
}

/// The root of a level-0 tile that holds all leaves of the tree; `None` for other paths, or too few leaves.
fn whole_tree(path: &str, bytes: &[u8], size: u64) -> Option<merkle::RootHash> {
    let leaves = u64::try_from(bytes.len() / HASH_BYTES).ok()?;
    let first = path == "tile/0/000" || path.starts_with("tile/0/000.p/");
    if !first || !bytes.len().is_multiple_of(HASH_BYTES) || leaves < size {
        return None;
    }
    let mut range = CompactRange::empty();
    let wanted = usize::try_from(size).ok()?;
    for leaf in bytes.chunks_exact(HASH_BYTES).take(wanted) {
        range.append(LeafHash::from_bytes(leaf.try_into().ok()?));
    }
    Some(range.root())
}

/// Verifies statements against their digests. Their issuers' keys need a trust file and are not checked here.
fn of_entries(
    kind: AlarmKind,
    checkpoint: Option<&Sighting>,
    entries: &[EntrySeen],
    known: &[VerifierKey],
) -> VerificationResult {
    let mut finding = VerificationResult::begin();
    if let Some(seen) = checkpoint {
        let note = Note::parse(seen.note.as_bytes());
        match note.map_err(|why| why.to_string()).and_then(|note| {
            if !known.is_empty() {
                note.verify(known).map_err(|why| why.to_string())?;
            }
            Checkpoint::parse_text(note.text()).map_err(|why| why.to_string())
        }) {
            Ok(checkpoint) => {
                finding.heads.push(head(&checkpoint));
                finding = with_places(finding, [seen]);
                match known.is_empty() {
                    true => finding.not_checked("signature", "no key: give the log's with --key"),
                    false => finding.ok("signature", "signed by the log's key"),
                }
            }
            Err(why) => {
                finding.failed("signature", why);
                return finding.ends(Verdict::Wrong, "the checkpoint is not the log's");
            }
        }
    }
    for entry in entries {
        match statement(entry) {
            Ok(words) => finding.ok("entry", words),
            Err(why) => {
                finding.failed("entry", format!("{}: {why}", place(entry)));
                return finding.ends(Verdict::Wrong, "the statements are not those entries");
            }
        }
    }
    if kind == AlarmKind::ChainFork {
        match both(entries).map(|[one, other]| chain::forked(&one, &other)) {
            Some(Ok(words)) => {
                finding.ok("signatures", "both by the key in the issuer's name");
                finding.failed("chain", words);
                return finding
                    .ends(Verdict::Equivocation, "the issuer signed two statements that exclude each other");
            }
            Some(Err(NoFork::Wrong(why))) => {
                finding.failed("chain", why);
                return finding.ends(Verdict::Wrong, "the evidence does not show it");
            }
            Some(Err(NoFork::Other(why))) => finding.not_checked("chain", why),
            None => finding.not_checked("chain", "both statements are needed to see that they fork it"),
        }
    }
    finding.not_checked("issuers", "whose keys signed is for `tabellion verify` and a trust file");
    finding.ends(Verdict::OnWord, "the statements are those entries; only the monitor states their positions")
}

/// The two statements; `None` if there are not exactly two.
fn both(entries: &[EntrySeen]) -> Option<[SignedStatement; 2]> {
    let parse = |entry: &EntrySeen| {
        let bytes = BASE64URL_NOPAD.decode(entry.statement.as_ref()?.as_bytes()).ok()?;
        SignedStatement::parse(bytes).ok()
    };
    let statements: Option<Vec<SignedStatement>> = entries.iter().map(parse).collect();
    statements?.try_into().ok()
}

fn statement(entry: &EntrySeen) -> Result<String, String> {
    let Some(text) = &entry.statement else {
        return Ok(format!("{}: {}, without its statement", place(entry), entry.entry_id));
    };
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| "not base64url".to_owned())?;
    let digest = EntryDigest::of(&bytes).to_string();
    if digest != entry.entry_id {
        return Err(format!("the statement's digest is {digest}, not {}", entry.entry_id));
    }
    let statement = SignedStatement::parse(bytes).map_err(|why| why.to_string())?;
    let header = statement.header();
    let (issuer, subject) = (header.iss().unwrap_or("?"), header.sub().unwrap_or("?"));
    Ok(format!("{}: by {issuer}, about {subject}", place(entry)))
}

fn place(entry: &EntrySeen) -> String {
    entry.index.map_or_else(|| "refused".to_owned(), |index| format!("leaf {index}"))
}

fn hashes(path: &TwoRootPath) -> Result<(Hash, Vec<Hash>), NotAHash> {
    Ok((path.start.parse()?, path.siblings.iter().map(|text| text.parse()).collect::<Result<_, _>>()?))
}

/// Adds the time and source of each sighting to the head of the same size and root; the order may differ.
fn with_places<const N: usize>(mut finding: VerificationResult, seen: [&Sighting; N]) -> VerificationResult {
    for sighting in seen {
        let head = Note::parse(sighting.note.as_bytes())
            .ok()
            .and_then(|note| Checkpoint::parse_text(note.text()).ok())
            .map(|checkpoint| head(&checkpoint));
        let place = finding.heads.iter_mut().filter(|known| known.seen.is_none()).find(|known| {
            head.as_ref().is_some_and(|head| head.size == known.size && head.root == known.root)
        });
        if let Some(place) = place {
            place.seen = Some(format!("{}  ({})", when(sighting.at), sighting.from));
        }
    }
    finding
}

fn when(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}
