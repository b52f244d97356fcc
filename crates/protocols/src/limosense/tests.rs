use super::Totals;
use crate::aggregation::tests::{check_contributing, check_leaving, check_sum};

#[test]
fn all_come_to_the_sum_although_messages_are_lost() {
    check_sum::<Totals>(200);
}

#[test]
fn a_node_that_leaves_takes_its_own_value_along_and_no_more() {
    check_leaving::<Totals>();
}

#[test]
fn a_value_that_changes_is_counted() {
    check_contributing::<Totals>();
}
