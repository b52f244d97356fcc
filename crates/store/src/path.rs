//! Paths (`a.b.c`) and the order in which a tree's paths stand.
//!
//! Paths are ordered segment by segment, so that a node is followed at once by all that is below
//! it: `a`, `a.b`, `a.b.c`, `a-b`. A subtree is one contiguous run.

use alloc::string::String;
use core::cmp::Ordering;

pub use tenure_wire::limits::PATH_BYTES_MAX;
pub use tenure_wire::path::PathError;
pub(crate) use tenure_wire::path::{check_node, check_value};

const _: () = assert!(PATH_BYTES_MAX <= u8::MAX as usize, "a record gives it one byte");

/// Whether flash may hold a path of a node: stores of former versions took control characters too.
pub(crate) fn may_be_stored(path: &str) -> bool {
    // Control characters are what is looked for last.
    matches!(check_node(path), Ok(()) | Err(PathError::ControlCharacter))
}

/// How two paths of one tree are ordered.
pub(crate) fn order(one: &[u8], two: &[u8]) -> Ordering {
    let rank = |byte: &u8| if *byte == b'.' { 0 } else { u16::from(*byte) + 1 };
    one.iter().map(rank).cmp(two.iter().map(rank))
}

/// Whether `path` is `node` or below it.
pub(crate) fn is_within(path: &[u8], node: &[u8]) -> bool {
    node.is_empty()
        || path.strip_prefix(node).is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

/// The first segment of `path` below `node`, if `path` is below it.
pub(crate) fn segment_below<'a>(path: &'a [u8], node: &[u8]) -> Option<&'a [u8]> {
    let below = match node {
        [] => path,
        _ => path.strip_prefix(node)?.strip_prefix(b".")?,
    };
    below.split(|byte| *byte == b'.').next()
}

/// The place where the first node below `path` stands, or the first after the one named `after`.
pub(crate) fn place_after_child(path: &str, after: Option<&str>) -> (String, Edge) {
    let mut sibling = String::from(path);
    let edge = match after {
        None if path.is_empty() => Edge::At,
        None => Edge::Past,
        Some(name) => {
            if !path.is_empty() {
                sibling.push('.');
            }
            sibling.push_str(name);
            Edge::Beyond
        }
    };
    (sibling, edge)
}

/// A place between two keys of the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) tree: u16,
    pub(crate) path: &'a [u8],
    pub(crate) edge: Edge,
}

/// On which side of its path a [`Place`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// At the path: a key equal to it matches.
    At,
    /// Past the path and before what is below it.
    Past,
    /// Past all that is below the path too.
    Beyond,
}

impl Place<'_> {
    /// How the key `path` of `tree` stands to this place.
    pub(crate) fn compare_key(&self, tree: u16, path: &[u8]) -> Ordering {
        let by_path = || match self.edge {
            Edge::Beyond if is_within(path, self.path) => Ordering::Less,
            Edge::Past if path == self.path => Ordering::Less,
            _ => order(path, self.path),
        };
        tree.cmp(&self.tree).then_with(by_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_may_hold_paths_of_former_versions_and_no_others() {
        for path in ["", "a.b", "a\0b.\x1b[2J"] {
            assert!(may_be_stored(path), "{path:?}");
        }
        for path in [".", "a..b\0", &"\n".repeat(PATH_BYTES_MAX + 1)] {
            assert!(!may_be_stored(path), "{path:?}");
        }
    }
}
