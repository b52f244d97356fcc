//! A router for tests of what builds on routers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tenure_mesh::{Context, Hears, NodeId, Protocol, Question, Serves};

use super::id;
use crate::interface::{LinkFailing, NextHopRated, Route, RouteChanged, Routed};

/// A router that was told its ways, for tests of what builds on routers.
#[derive(Debug, Default)]
pub(crate) struct FixedRouter {
    pub(crate) ways: BTreeMap<NodeId, NodeId>,
    pub(crate) failing: Vec<NodeId>,
    /// Which next hops were said to pass on, or not.
    pub(crate) rated: Vec<(NodeId, bool)>,
    /// Of all next hops.
    pub(crate) life: u32,
}

tenure_mesh::protocol! {
    FixedRouter = 250, "fixed router";
    serves { Route }
    hears { LinkFailing, NextHopRated }
    tells { RouteChanged }
}

impl Protocol for FixedRouter {}

impl Serves<Route> for FixedRouter {
    fn serve(
        &mut self,
        Route { destination }: Route,
        _: &Question<'_, Route>,
        _: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        Some(Routed { next_hop: self.ways.get(&destination).copied(), life: self.life })
    }
}

impl Hears<LinkFailing> for FixedRouter {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], _: &mut Context<'_, Self>) {
        self.failing.push(failing.neighbour);
    }
}

impl Hears<NextHopRated> for FixedRouter {
    fn hear(&mut self, rated: NextHopRated, _: &[u8], _: &mut Context<'_, Self>) {
        self.rated.push((rated.neighbour, rated.passes_on));
    }
}

/// The router of node `index` of a line of `count`.
pub(crate) fn line_router(index: usize, count: usize) -> FixedRouter {
    let next = |to| if to < index { index - 1 } else { index + 1 };
    let others = (0..count).filter(|to| *to != index);
    FixedRouter {
        ways: others.map(|to| (id(to), id(next(to)))).collect(),
        ..FixedRouter::default()
    }
}
