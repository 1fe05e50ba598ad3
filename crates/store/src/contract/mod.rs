//! Contract tests of [`LogStore`](crate::LogStore), run by every store crate over its own database.
//!
//! Each test checks one sentence of the traits' documentation. A store crate implements [`LogDatabase`] and passes a
//! constructor for a fresh one; the macro writes the tests:
//!
//! ```text
//! store::log_store_contract!(memory: || async { store::Memory::new() });
//! ```
//!
//! Not here: failures that only one database can have (a swapped file, a lost connection). The crate of that
//! database tests them.

mod commit;
mod cosignatures;
mod custody;
mod fixture;
mod heads;
mod inbox;
mod indexer;
mod lookup;
mod moving;
mod opening;
mod quotas;
mod reading;
mod reports;

use std::sync::Arc;

use async_trait::async_trait;

pub use commit::*;
pub use cosignatures::*;
pub use custody::*;
pub use fixture::{Appender, ORIGIN, entry, statement};
pub use heads::*;
pub use inbox::*;
pub use indexer::Indexer;
pub use lookup::*;
pub use moving::*;
pub use opening::*;
pub use quotas::*;
pub use reading::*;
pub use reports::*;

use crate::{LogStore, Memory};

/// Database that no other test uses; removed when this value is dropped.
#[async_trait]
pub trait LogDatabase: Send + Sync + 'static {
    /// Opens another handle on the same database, as a second process or a restarted one would.
    async fn handle(&self) -> Arc<dyn LogStore>;
}

#[async_trait]
impl LogDatabase for Memory {
    async fn handle(&self) -> Arc<dyn LogStore> {
        Arc::new(self.clone())
    }
}

/// Writes the whole contract suite for each store given as `name: constructor`. The constructor is an async
/// function without arguments that returns a fresh [`LogDatabase`].
#[macro_export]
macro_rules! log_store_contract {
    ($($name:ident: $fresh:expr),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::__log_store_promises! { $fresh =>
                a_new_log_is_empty,
                opening_again_answers_the_head_in_force,
                concurrent_opens_see_one_log,
                a_log_of_another_origin_is_refused,
                a_durable_database_passes_its_own_check,
                only_one_handle_holds_the_lease,
                a_dropped_lease_is_free_again,

                a_commit_is_seen_whole_by_another_handle,
                a_log_is_reopened_at_every_size_around_a_power_of_two,
                a_commit_under_another_epoch_is_fenced,
                a_commit_over_another_size_is_fenced,
                a_commit_over_another_root_is_fenced,
                of_commits_over_one_head_one_succeeds,
                a_take_over_raises_the_epoch_and_fences_the_older_holder,
                no_epoch_is_given_twice,
                a_take_over_sees_the_commit_it_raced_or_fences_it,
                a_fenced_commit_changes_nothing,
                a_batch_that_contradicts_itself_is_not_committed,
                only_a_clock_correction_sets_the_time_back,
                holds_begin_and_end_with_the_entries_that_say_so,
                an_entry_without_bytes_is_not_held_by_a_batch,
                a_log_is_frozen_with_the_entry_that_says_so,
                effects_that_no_entry_has_are_not_committed,
                an_entry_of_the_log_is_not_appended_again,
                an_entry_is_not_appended_twice_by_one_batch,
                a_twin_is_found_as_the_entry_and_cannot_enter,
                an_entry_whose_twin_is_in_the_log_cannot_enter,
                a_taken_guard_refuses_the_batch_and_nothing_changes,
                a_guard_is_not_taken_twice_by_one_batch,
                a_partial_tile_grows_and_a_full_one_stays,
                a_tile_that_would_change_refuses_the_batch,
                a_tile_has_the_same_hashes_however_it_was_filled,

                every_field_of_an_entry_comes_back_as_it_went_in,
                entries_come_in_order_and_end_at_the_size,
                find_answers_each_digest_in_order,
                guards_answer_each_key_in_order,
                collateral_comes_in_order_of_kind,
                tiles_answer_each_address_in_order,
                readers_never_see_half_a_batch,

                every_committed_head_is_kept,
                a_head_is_found_by_exactly_its_size,
                a_leaf_is_covered_first_by_the_head_of_its_batch,
                the_first_signature_stands,
                signatures_are_stored_with_a_batch,
                a_signature_over_a_head_that_was_never_committed_is_refused,
                the_newest_signed_head_is_found_by_kind,
                the_signatures_of_a_head_are_never_split,
                a_known_key_is_left_as_it_is,
                a_key_that_is_taken_up_retires_its_predecessor,
                a_key_is_not_taken_up_under_an_older_epoch,
                a_key_is_announced_only_for_one_in_force,
                a_compromise_is_only_marked_earlier,

                cosignatures_come_back_in_order_of_witness,
                only_a_newer_cosignature_replaces_an_older_one,
                of_cosignatures_at_once_the_newest_stays,
                a_cosignature_of_a_head_that_was_never_committed_is_refused,
                the_newest_cosignature_of_a_witness_is_that_of_the_largest_head,
                cosigned_heads_come_largest_first_and_are_never_split,

                pending_statements_come_oldest_first,
                enqueueing_a_pending_statement_again_changes_nothing,
                a_commit_settles_what_waited_for_it,
                a_batch_without_entries_settles_and_adds_no_head,
                a_fenced_commit_settles_nothing,
                a_refused_statement_says_why_until_it_is_enqueued_again,
                refusing_what_does_not_wait_changes_nothing,
                trimming_forgets_only_what_is_finished,
                a_failure_outlives_the_trimming,
                of_failures_the_newest_are_kept,
                of_failures_the_one_that_ended_last_is_the_newest,
                trimming_a_registered_statement_forgets_its_earlier_failures,
                pending_keys_come_in_order_of_arrival_with_issuer_size_and_time,
                submissions_are_read_by_number_while_they_are_pending,
                an_issuer_that_used_up_its_share_of_the_inbox_keeps_nobody_else_out,
                the_inbox_keeps_no_more_rows_and_bytes_than_its_bounds,
                the_use_of_the_inbox_counts_what_is_pending,

                an_erased_entry_keeps_its_place_and_loses_its_bytes,
                erasing_again_changes_nothing,
                the_standing_of_entries_comes_in_order_and_without_those_that_are_not_there,
                erasing_what_is_not_in_the_log_is_refused_whole,
                a_log_grows_over_erased_entries,
                erasing_forgets_the_finished_submission,
                a_held_entry_is_not_erased_until_it_is_released,
                holds_are_listed_with_their_ends,
                only_an_entry_that_is_there_can_be_held,
                a_hold_and_an_erasure_at_once_do_not_both_succeed,
                an_index_that_is_behind_does_not_bring_an_erased_entry_back,

                reports_come_back_in_order,
                a_report_is_kept_once,
                a_guard_has_a_bounded_number_of_reports,
                erasing_an_entry_empties_the_reports_about_it,
                a_report_about_an_erased_entry_is_kept_without_its_statement,

                a_new_index_is_empty,
                what_is_indexed_is_found,
                pages_join_without_gap_or_overlap,
                each_of_many_values_is_found,
                every_term_of_a_search_must_hold,
                a_search_that_looks_at_much_stops_and_says_where,
                a_run_that_two_processes_write_is_complete_once,
                a_run_of_entries_that_were_never_committed_is_refused,
                a_run_that_is_not_finished_is_not_seen_and_goes,
                a_dropped_index_starts_again_and_forgets,
                an_erased_entry_leaves_its_runs_and_the_list_of_values,
                eight_runs_merge_into_one,
                a_node_is_found_by_the_place_that_it_is_in,
                answers_are_proven_until_an_erasure_changes_their_run,
                the_runs_of_the_newest_head_stay,
                a_search_lists_the_entries_that_may_match,
                a_check_names_entries_and_runs_that_are_damaged,
                any_value_can_be_indexed_and_found,
                values_are_found_by_their_beginning,
                a_search_with_too_many_terms_is_refused,

                a_frozen_log_takes_no_commit_and_no_take_over,
                freezing_sees_the_commit_it_raced_or_refuses_it,
                a_frozen_log_stays_as_it_is_when_it_is_frozen_again,
                a_frozen_log_is_signed_held_and_erased,
                a_frozen_log_accepts_nothing_into_its_inbox,
                rows_that_lead_to_entries_come_in_order_of_key,
                a_filled_log_is_the_log_that_it_was,
                a_log_that_is_being_filled_is_nobody_elses,
                a_database_with_a_log_is_not_filled,
                history_that_contradicts_itself_is_not_filled,
                history_in_which_the_clock_was_corrected_is_filled,

                a_quota_is_shared_and_never_exceeded,
                a_quota_grants_what_is_left,
                a_later_window_starts_at_nothing,
                old_quotas_are_forgotten,
            }
        }
    )+};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_store_promises {
    ($fresh:expr => $($promise:ident),+ $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            $crate::contract::$promise(&($fresh)().await).await;
        }
    )+};
}
