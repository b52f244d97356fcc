//! Devices and hubs that tell more than there can be.

use anyhow::bail;
use tenure_wire::control::TreeNode;
use tenure_wire::limits::PATH_BYTES_MAX;

use super::*;

fn node(children: &[&str], total: u32) -> TreeNode {
    let children = children.iter().map(|child| child.to_string()).collect();
    TreeNode { value: None, children, total, is_damaged: false }
}

#[test]
fn list_without_end_is_given_up_at_its_bound() {
    let mut asked = 0;
    let gathered = gather("the device lists machines", |skip| {
        asked = skip as usize;
        Ok((vec![0_u64; 1_000], true))
    });
    let error = gathered.unwrap_err().to_string();
    assert_eq!(error, "the device lists machines without end");
    assert_eq!(asked, LISTED_MAX);
    let longest = gather("", |skip| Ok((vec![0_u64; 1_000], skip as usize + 1_000 < LISTED_MAX)));
    assert_eq!(longest.unwrap().len(), LISTED_MAX);
}

#[test]
fn list_that_promises_more_and_brings_nothing_ends() {
    let mut pages = vec![vec![], vec![1, 2], vec![3]];
    let gathered = gather("", |_| Ok((pages.pop().unwrap(), true)));
    assert_eq!(gathered.unwrap(), [3, 1, 2]);
    assert!(gather::<u8>("", |_| bail!("unreachable")).is_err());
}

#[test]
fn tree_whose_children_never_end_is_given_up_at_its_bound() {
    let mut asked = 0;
    let walked = TreeWalk::values(
        |path: &str, _| {
            asked += 1;
            Ok(if path == "a" { node(&["b"], u32::MAX) } else { node(&[], 0) })
        },
        "a",
    );
    assert!(walked.unwrap_err().to_string().contains("without end"));
    assert_eq!(asked, LISTED_MAX);
}

#[test]
fn tree_without_a_bottom_is_given_up_before_the_stack_ends() {
    for child in ["deeper", "", "."] {
        let mut asked = 0;
        let walked = TreeWalk::values(
            |_: &str, _| {
                asked += 1;
                Ok(node(&[child], 1))
            },
            "",
        );
        assert!(walked.unwrap_err().to_string().contains("a path that none can be"));
        assert!(asked <= PATH_BYTES_MAX + 1, "{asked} questions for `{child}`");
    }
}
