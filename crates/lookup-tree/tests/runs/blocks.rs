//! Blocks hold what was written, and find what is in an interval.

use lookup_tree::limits::MAX_BLOCK_BYTES;
use lookup_tree::{BlockWriteError, BlockWriter, Posting, PostingBlock, read_block, read_block_between};
use merkle::LeafIndex;
use proptest::prelude::*;

use crate::support::{agent, agents_in_turn, posting};
use crate::trees::any_run;

const START: LeafIndex = LeafIndex::new(0);

fn blocks(start: LeafIndex, run: &[Posting]) -> Vec<PostingBlock> {
    let mut writer = BlockWriter::new(start);
    let mut blocks: Vec<_> = run.iter().filter_map(|posting| writer.push(*posting).unwrap()).collect();
    blocks.extend(writer.finish());
    blocks
}

proptest! {
    #[test]
    fn a_block_gives_back_its_postings_and_those_of_any_interval(run in any_run(), from in 0..200usize, to in 0..200usize) {
        let blocks = blocks(START, &run);
        let read: Vec<Posting> = blocks.iter().flat_map(|block| read_block(&block.bytes, START).unwrap()).collect();
        prop_assert_eq!(&read, &run);
        if from < run.len() && from <= to {
            let wanted = run[from]..=run[to.min(run.len() - 1)];
            let found: Vec<Posting> =
                blocks.iter().flat_map(|block| read_block_between(&block.bytes, START, &wanted).unwrap()).collect();
            prop_assert_eq!(&found[..], &run[from..=to.min(run.len() - 1)]);
        }
    }
}

#[test]
fn a_run_is_cut_into_full_blocks() {
    let start = LeafIndex::new(1 << 20);
    for agents in [1, 7, 5_000] {
        let run = agents_in_turn(start.get(), 20_000, agents);
        let blocks = blocks(start, &run);
        for pair in blocks.windows(2) {
            assert!((MAX_BLOCK_BYTES - 40..=MAX_BLOCK_BYTES).contains(&pair[0].bytes.len()));
            assert!(pair[0].first < pair[1].first);
        }
        for block in &blocks {
            assert_eq!(read_block(&block.bytes, start).unwrap()[0], block.first);
        }
        let read: Vec<_> = blocks.iter().flat_map(|block| read_block(&block.bytes, start).unwrap()).collect();
        assert_eq!(read, run);
    }
    assert_eq!(blocks(start, &[]), []);
}

#[test]
fn a_posting_before_the_run_or_out_of_order_is_not_written() {
    let mut writer = BlockWriter::new(LeafIndex::new(10));
    assert!(matches!(writer.push(posting(agent(1), 9)), Err(BlockWriteError::BeforeRun { .. })));
    assert_eq!(writer.push(posting(agent(1), 10)), Ok(None));
    assert!(matches!(writer.push(posting(agent(1), 10)), Err(BlockWriteError::OutOfOrder(_))));
    assert_eq!(
        read_block(&writer.finish().unwrap().bytes, LeafIndex::new(10)),
        Ok(vec![posting(agent(1), 10)])
    );
}
