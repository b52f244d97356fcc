//! Lists that a device or a hub tells page by page, bounded so that one that lies doesn't fill this
//! computer's memory or keep a command for good.

use anyhow::ensure;
use tenure_wire::control::{TreeNode, TreeValue};
use tenure_wire::path;

/// The most entries of a list, and questions for one, that a command takes in: far above what any device has.
pub(crate) const LISTED_MAX: usize = 100_000;

/// Gathers a list whose pages `ask` returns, each by how many entries are known and with whether
/// more follow. A page without entries is the last.
///
/// # Errors
/// Those of `ask`, or `teller` tells of more than [`LISTED_MAX`] entries.
pub(crate) fn gather<T>(
    teller: &str,
    mut ask: impl FnMut(u32) -> anyhow::Result<(Vec<T>, bool)>,
) -> anyhow::Result<Vec<T>> {
    let mut gathered = Vec::new();
    loop {
        let (page, more) = ask(gathered.len() as u32)?;
        let is_last = page.is_empty() || !more;
        gathered.extend(page);
        ensure!(gathered.len() <= LISTED_MAX, "{teller} without end");
        if is_last {
            return Ok(gathered);
        }
    }
}

/// A walk over a machine's tree, node by node, which `ask` tells by path and by how many children are known.
pub(crate) struct TreeWalk<A> {
    ask: A,
    /// Those that can't be read are `None`.
    values: Vec<(String, Option<TreeValue>)>,
    /// How many questions were asked.
    asked: usize,
}

impl<A: FnMut(&str, u32) -> anyhow::Result<TreeNode>> TreeWalk<A> {
    /// The values at `path` and below it; one that can't be read is `None`.
    ///
    /// # Errors
    /// Those of `ask`, or the device tells what is no tree: too deep, or without end.
    pub(crate) fn values(ask: A, path: &str) -> anyhow::Result<Vec<(String, Option<TreeValue>)>> {
        let mut walk = Self { ask, values: Vec::new(), asked: 0 };
        walk.visit(path)?;
        Ok(walk.values)
    }

    fn visit(&mut self, path: &str) -> anyhow::Result<()> {
        ensure!(path::check_node(path).is_ok(), "the device tells of a path that none can be");
        let mut skip = 0;
        loop {
            self.asked += 1;
            ensure!(self.asked <= LISTED_MAX, "the device tells of values without end");
            let node = (self.ask)(path, skip)?;
            if skip == 0 && (node.value.is_some() || node.is_damaged) {
                self.values.push((path.to_string(), node.value));
            }
            for child in &node.children {
                // One without a name would be its own parent, as deep as this computer's stack goes.
                ensure!(!child.is_empty(), "the device tells of a path that none can be");
                let below = if path.is_empty() { child.clone() } else { format!("{path}.{child}") };
                self.visit(&below)?;
            }
            skip += node.children.len() as u32;
            if node.children.is_empty() || skip >= node.total {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
