//! Whole answers: pages, several terms, and answers that do not fit their head.

use fastrand::Rng;
use lookup_tree::{AnswerRefused, IndexQuestion, LeafRange, NotOneAnswer, RunId};
use merkle::LeafIndex;

use crate::support::agent;
use crate::world::World;

const SIZE: u64 = 9_000;

#[test]
fn honest_answers_to_random_questions_are_true() {
    let mut rng = Rng::with_seed(3);
    let world = World::new(1, SIZE);
    for _ in 0..40 {
        let question = world.question(&mut rng);
        let proven = world.head.verify(question.clone(), &world.prove(&question)).unwrap();
        let keys = question.keys().iter();
        let named: usize = keys.map(|key| proven.leaves_of(*key).unwrap().len()).sum();
        assert_eq!(named + proven.blind().count(), world.truth(&question).len());
        assert_eq!(proven.leaves_of(agent(77)), None, "the question is not about it");
    }
}

#[test]
fn pages_come_newest_first_and_join_to_the_whole_answer() {
    let world = World::new(2, SIZE);
    let whole = IndexQuestion::new([agent(101)], LeafRange::new(50, SIZE - 20)).unwrap();
    let expected = world.head.verify(whole.clone(), &world.prove(&whole)).unwrap();
    let answer = expected.leaves_of(agent(101)).unwrap();
    let (mut left, mut joined, mut pages) = (whole.leaves(), None, 0);
    while !left.is_empty() {
        let newest = answer.iter().rev().filter(|leaf| left.contains(**leaf));
        let start = newest.copied().nth(10).map_or(left.start, |next| LeafIndex::new(next.get() + 1));
        let page = whole.clone().with_leaves(LeafRange { start, ..left });
        left.end = start;
        let proven = world.head.verify(page.clone(), &world.prove(&page)).unwrap();
        assert!((1..=10).contains(&proven.leaves_of(agent(101)).unwrap().len()));
        joined = match joined {
            None => Some(proven),
            Some(newer) => Some(lookup_tree::ProvenAnswer::join(newer, proven).unwrap()),
        };
        pages += 1;
    }
    assert!(pages > 3);
    assert_eq!(joined, Some(expected));
}

#[test]
fn pages_of_other_heads_other_keys_or_with_a_gap_do_not_join() {
    let (world, other) = (World::new(2, 300), World::new(3, 300));
    let proven = |world: &World, number, start, end| {
        let question = IndexQuestion::new([agent(number)], LeafRange::new(start, end)).unwrap();
        world.head.verify(question.clone(), &world.prove(&question)).unwrap()
    };
    let newer = || proven(&world, 1, 200, 300);
    assert!(newer().join(proven(&world, 1, 0, 200)).is_ok());
    assert!(matches!(newer().join(proven(&other, 1, 0, 200)), Err(NotOneAnswer::OtherHead(..))));
    assert!(matches!(newer().join(proven(&world, 2, 0, 200)), Err(NotOneAnswer::OtherKeys)));
    assert!(matches!(newer().join(proven(&world, 1, 0, 199)), Err(NotOneAnswer::NotAdjacent { .. })));
    assert!(matches!(newer().join(proven(&world, 1, 0, 201)), Err(NotOneAnswer::NotAdjacent { .. })));
}

#[test]
fn a_proven_list_of_a_second_term_excludes_entries() {
    let world = World::new(4, 2_000);
    let (common, rare) = (agent(1), agent(103));
    let leaves = LeafRange::new(0, 2_000);
    let both = IndexQuestion::new([common, rare], leaves).unwrap();
    let both = world.head.verify(both.clone(), &world.prove(&both)).unwrap();
    let one = IndexQuestion::new([rare], leaves).unwrap();
    let one = world.head.verify(one.clone(), &world.prove(&one)).unwrap();
    let terms = [vec![common], vec![rare]];
    let (excluded, shown) = (both.candidates(&terms).unwrap(), one.candidates(&terms).unwrap());
    assert_eq!(shown, one.leaves_of(rare).unwrap());
    assert!(excluded.is_subset(&shown) && excluded.len() < shown.len() && !excluded.is_empty());
    assert_eq!(one.candidates(&[vec![common]]), None, "no list of this term is proven");
    let either = both.candidates(&[vec![common, rare]]).unwrap();
    assert_eq!(either.len(), both.leaves_of(common).unwrap().len() + shown.len() - excluded.len());
}

#[test]
fn an_answer_has_the_proofs_of_exactly_the_runs_that_the_question_meets() {
    let world = World::new(5, SIZE);
    let question = IndexQuestion::new([agent(1)], LeafRange::new(4_096, SIZE)).unwrap();
    let honest = world.prove(&question);
    let runs: Vec<RunId> = honest.keys().copied().collect();
    assert_eq!(runs, [RunId { level: 0, number: 1 }, RunId::TAIL]);

    let mut missing = honest.clone();
    missing.remove(&RunId::TAIL);
    assert_eq!(world.head.verify(question.clone(), &missing), Err(AnswerRefused::MissingRun(RunId::TAIL)));

    let mut unneeded = honest.clone();
    let first = RunId { level: 0, number: 0 };
    unneeded.insert(first, honest[&RunId::TAIL].clone());
    assert_eq!(world.head.verify(question.clone(), &unneeded), Err(AnswerRefused::UnneededRun(first)));

    let beyond = question.clone().with_leaves(LeafRange::new(0, SIZE + 1));
    assert!(matches!(world.head.verify(beyond, &honest), Err(AnswerRefused::BeyondHead { .. })));

    let mut head = world.head.clone();
    head.runs.swap(0, 1);
    assert!(matches!(head.verify(question.clone(), &honest), Err(AnswerRefused::WrongRuns(_))));
    head = world.head.clone();
    head.size = merkle::TreeSize::new(SIZE + LeafIndex::new(4_096).get());
    assert!(matches!(head.verify(question, &honest), Err(AnswerRefused::WrongRuns(_))));
}
