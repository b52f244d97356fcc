use super::LimoSense;
use crate::aggregation::tests::{check_churn, check_contributing, check_flapping, check_sum};

#[test]
fn all_come_to_the_sum_although_messages_are_lost() {
    check_sum::<LimoSense>(200);
}

#[test]
fn who_joins_crashes_and_leaves_is_counted_while_it_is_there() {
    check_churn::<LimoSense>();
}

#[test]
fn a_link_that_is_down_for_a_moment_unsettles_nothing() {
    check_flapping::<LimoSense>();
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<LimoSense>();
}
