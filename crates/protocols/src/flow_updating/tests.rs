use super::FlowUpdating;
use crate::aggregation::tests::{check_churn, check_contributing, check_flapping, check_sum};

#[test]
fn all_come_to_the_sum_although_messages_are_lost() {
    check_sum::<FlowUpdating>(200);
}

#[test]
fn who_joins_crashes_and_leaves_is_counted_while_it_is_there() {
    check_churn::<FlowUpdating>();
}

#[test]
fn a_link_that_is_down_for_a_moment_unsettles_nothing() {
    check_flapping::<FlowUpdating>();
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<FlowUpdating>();
}
