//! `/ui/growth`: the size of the tree over time.

use axum::extract::State;
use axum::response::Response;
use explorer::{GrowthPage, GrowthPoint};
use store::{CommittedHead, LogReader, StoreError};

use super::page::{frame, page};
use crate::edge::problem::Problem;
use crate::limits::GROWTH_POINTS;
use crate::routes::app::App;
use crate::time::rfc3339;

/// The page of the growth.
pub async fn growth(State(app): State<App>) -> Result<Response, Problem> {
    let heads = sampled(&*app.log.store).await?;
    let growth = GrowthPage { points: heads.iter().map(point).collect() };
    Ok(page(growth.html(&frame(&app.log))))
}

/// Up to [`GROWTH_POINTS`] heads at equal distances, the first and the last among them.
async fn sampled(store: &dyn LogReader) -> Result<Vec<CommittedHead>, StoreError> {
    let last = store.head().await?.batch;
    let mut heads = Vec::new();
    for batch in numbers(last) {
        heads.extend(store.heads(batch, 1).await?);
    }
    Ok(heads)
}

/// The numbers of the sampled batches of a log with `last` batches.
fn numbers(last: u64) -> Vec<u64> {
    let count = last.min(GROWTH_POINTS);
    let number =
        |at: u64| 1 + (u128::from(last - 1) * u128::from(at) / u128::from((count - 1).max(1))) as u64;
    (0..count).map(number).collect()
}

fn point(head: &CommittedHead) -> GrowthPoint {
    GrowthPoint { seconds: head.at, at: rfc3339(head.at), size: head.size.get() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_batch_are_among_the_sampled_ones() {
        assert_eq!(numbers(0), [0; 0]);
        assert_eq!(numbers(1), [1]);
        assert_eq!(numbers(3), [1, 2, 3]);
        let many = numbers(u64::MAX);
        assert_eq!(
            (many.len() as u64, many.first(), many.last()),
            (GROWTH_POINTS, Some(&1), Some(&u64::MAX))
        );
        assert!(many.is_sorted());
    }
}
