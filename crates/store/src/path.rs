//! Paths (`a.b.c`) and the order in which a tree's paths stand.
//!
//! Paths are ordered segment by segment, so that a node is followed at once by all that is below
//! it: `a`, `a.b`, `a.b.c`, `a-b`. A subtree is one contiguous run.

use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;

/// The longest path, in bytes, dots included.
pub const PATH_BYTES_MAX: usize = 128;

const _: () = assert!(PATH_BYTES_MAX <= u8::MAX as usize, "a record gives it one byte");

/// Why a path is none. The caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It has no segment, where a value's place is needed.
    Empty,
    /// Two dots stand side by side, or a dot stands first or last.
    EmptySegment,
    /// Longer than [`PATH_BYTES_MAX`].
    TooLong,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the path is empty"),
            Self::EmptySegment => f.write_str("the path has an empty segment"),
            Self::TooLong => write!(f, "the path is longer than {PATH_BYTES_MAX} bytes"),
        }
    }
}

impl core::error::Error for PathError {}

/// Checks the path of a value.
pub(crate) fn check_value(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    check_node(path)
}

/// Checks the path of a node; the empty path is the tree itself.
pub(crate) fn check_node(path: &str) -> Result<(), PathError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    if !path.is_empty() && path.split('.').any(str::is_empty) {
        return Err(PathError::EmptySegment);
    }
    Ok(())
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
