//! Parameters of pages, and the addresses of the pages that follow.

use axum::extract::rejection::QueryRejection;

use super::wrong_query;
use crate::edge::problem::{Problem, shortened_to};
use crate::view::pages::DEFAULT_PAGE;

/// Returns the size of a page: the requested one, or the default.
pub fn page_limit(requested: Option<usize>, most: usize) -> Result<usize, Problem> {
    let limit = requested.unwrap_or(DEFAULT_PAGE.min(most));
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => Err(wrong_page(format!("limit is a number from 1 to {most}"))),
    }
}

/// Returns the first leaf of the page that follows a leaf; 0 without one.
pub fn first_leaf(after: Option<u64>) -> Result<u64, Problem> {
    let past = || wrong_page("after is past every leaf".into());
    after.map_or(Ok(0), |after| after.checked_add(1).ok_or_else(past))
}

/// Returns the 400 for a query of a page that cannot be read, with the cause.
pub fn wrong_page_query(refused: QueryRejection) -> Problem {
    wrong_page(wrong_query(&refused))
}

/// Returns the 400 for a wrong parameter of a page.
pub fn wrong_page(detail: String) -> Problem {
    Problem::malformed("page", shortened_to(&detail, 200))
}
