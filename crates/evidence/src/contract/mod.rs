//! Contract tests of [`EvidenceStore`], run by every evidence crate over its own database.
//!
//! Each test checks one sentence of the trait's documentation. An evidence crate implements [`EvidenceDatabase`] and passes a
//! constructor for a fresh one; the macro writes the tests:
//!
//! ```text
//! evidence::evidence_store_contract!(memory: || async { evidence::Memory::new("maker") });
//! ```
//!
//! Not here: failures that only one database can have (a full disk, a lost connection). The crate of that database
//! tests them.

mod commit;
mod fixture;
mod leases;
mod outbox;
mod pruning;
mod reading;
mod stream_editor;

use std::sync::Arc;

use async_trait::async_trait;

pub use commit::*;
pub use fixture::{Stream, at, decision, first, record, refused};
pub use leases::*;
pub use outbox::*;
pub use pruning::*;
pub use reading::*;
pub use stream_editor::*;

use crate::{EvidenceStore, Memory, StreamEditor};

/// Database that no other test uses; removed when this value is dropped.
#[async_trait]
pub trait EvidenceDatabase: Send + Sync + 'static {
    /// Opens a handle for a new instance, as a second process or a restarted one would.
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore>;

    /// Opens the access of a command.
    async fn stream_editor(&self) -> Box<dyn StreamEditor>;
}

#[async_trait]
impl EvidenceDatabase for Memory {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.another(instance))
    }

    async fn stream_editor(&self) -> Box<dyn StreamEditor> {
        Box::new(self.clone())
    }
}

/// Writes the whole contract suite for each store given as `name: constructor`. The constructor is an async
/// function without arguments that returns a fresh [`EvidenceDatabase`].
#[macro_export]
macro_rules! evidence_store_contract {
    ($($name:ident: $fresh:expr),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::__evidence_promises! { $fresh =>
                a_new_stream_is_seen_by_another_instance,
                a_change_moves_a_stream_by_one_version,
                what_is_agreed_stays_until_it_is_changed,
                when_a_stream_ends_stays_until_it_is_changed,
                a_change_from_another_version_conflicts_and_changes_nothing,
                a_change_that_relies_on_another_version_conflicts,
                a_change_that_relies_on_an_absence_conflicts_once_the_stream_is_there,
                a_commit_that_moves_what_it_relies_on_is_refused,
                a_new_stream_of_a_taken_name_conflicts,
                a_change_of_a_stream_that_is_not_there_conflicts,
                a_conflict_names_every_stream_and_no_other,
                of_changes_at_once_one_succeeds,
                instances_that_share_a_stream_lose_no_change,
                many_changes_are_one_commit,
                changes_of_one_stream_follow_each_other,
                changes_that_contradict_themselves_are_refused,
                records_out_of_sequence_are_refused,
                a_record_is_kept_once,
                a_claim_is_taken_once_in_its_stream,
                claims_of_different_kinds_are_different,
                a_commit_that_happened_is_told_from_one_that_did_not,
                any_name_and_any_bytes_come_back,
                nothing_at_all_is_a_commit,
                a_durable_database_passes_its_own_check,

                every_field_of_a_record_comes_back_as_it_went_in,
                a_streams_records_come_in_order_and_in_pages,
                streams_are_listed_by_name,
                streams_are_due_by_time_until_they_are_closed,
                streams_are_answered_in_the_order_asked,

                what_is_committed_waits_in_order,
                what_is_delivered_waits_no_more_and_stays_on_record,
                delivering_again_keeps_the_first_receipt,
                delivering_the_unknown_changes_nothing,
                what_is_stuck_is_counted_and_not_pending,
                what_is_stuck_can_be_tried_again_or_delivered,
                what_was_stuck_once_waits_behind_the_rest,
                what_was_stuck_once_says_nothing_about_the_age_of_the_rest,
                a_long_reason_is_cut,
                the_backlog_counts_what_waits,
                the_backlog_is_the_same_for_every_instance,

                a_served_decision_is_an_orphan_once_its_instance_has_left,
                a_decision_of_a_living_instance_is_nobody_elses,
                a_lease_that_is_over_gives_its_decisions_and_its_outbox_away,
                a_settled_decision_is_no_orphan,
                a_decision_settled_by_its_own_commit_was_never_open,
                settling_twice_changes_nothing,

                what_a_command_changes_is_seen_by_every_instance,
                a_command_changes_only_what_it_has_seen,
                a_gateway_that_changes_what_a_command_changed_loads_it_first,
                a_command_lists_what_the_gateways_keep,

                old_records_go_once_they_are_delivered,
                an_unsettled_decision_stays,
                a_stream_goes_when_it_is_over_and_its_records_are_gone,
                pruning_does_a_bounded_amount,
                a_name_that_was_forgotten_begins_anew,
                a_stream_begun_anew_is_not_taken_for_the_forgotten_one,
            }
        }
    )+};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __evidence_promises {
    ($fresh:expr => $($promise:ident),+ $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            $crate::contract::$promise(&($fresh)().await).await;
        }
    )+};
}
