//! Push gossip: a node that hears a body for the first time gives it to a few random neighbours.
//!
//! Source: Eugster, Guerraoui, Handurukande, Kouznetsov and Kermarrec, "Lightweight probabilistic
//! broadcast" (TOCS 2003); for why a fixed few suffice, Kermarrec, Massoulié and Ganesh, "Probabilistic
//! reliable dissemination in large-scale systems" (TPDS 2003). The neighbours are those whose links
//! are up; the one it came from isn't chosen.
//!
//! ```text
//!            heard                   given to `fanout` neighbours
//!  unknown ─────────► told ─────────────────────────────────────────► known
//! ```

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Context, Destination, Handles, Hears, NodeId, Outgoing, Protocol, Question, Reception, Serves,
};

use crate::broadcast::{Name, Names, fits};
use crate::interface::{LinkDown, LinkUp, Port, Publish, Published, Taken};

#[cfg(test)]
mod tests;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// To how many neighbours a body is given.
    pub fanout: usize,
    /// How many hops it makes at most.
    pub hops_max: u8,
    /// How many bodies are known again.
    pub remembered: usize,
    /// The most neighbours that are remembered.
    pub neighbours_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { fanout: 4, hops_max: 32, remembered: 256, neighbours_max: 64 }
    }
}

/// Push gossip.
#[derive(Debug)]
pub struct Gossip {
    config: Config,
    names: Names,
    neighbours: Vec<NodeId>,
}

/// A body, which follows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rumour {
    name: Name,
    port: Port,
    hops_left: u8,
}

tenure_mesh::protocol! {
    Gossip = 8, "gossip";
    messages { Rumour = 1 }
    carries { Rumour }
    serves { Publish }
    hears { LinkUp, LinkDown }
    tells { Published }
}

impl Gossip {
    /// Gossip with what was chosen.
    pub fn new(config: Config) -> Self {
        Self { config, names: Names::new(config.remembered), neighbours: Vec::new() }
    }

    /// Gives a body to a few neighbours, but not to `from`.
    fn push(
        &mut self,
        rumour: &Rumour,
        body: &[u8],
        from: Option<NodeId>,
        context: &mut Context<'_, Self>,
    ) {
        let mut left = self.neighbours.iter().filter(|it| Some(**it) != from).count();
        let mut wanted = self.config.fanout.min(left);
        // Selection sampling (Knuth, TAOCP 2, 3.4.2 S): each few are equally likely.
        for &neighbour in self.neighbours.iter().filter(|it| Some(**it) != from) {
            if (context.random().below(left as u64) as usize) < wanted {
                wanted -= 1;
                let to = Destination::One(neighbour);
                context.transmit(rumour, Outgoing { to, body, ..Outgoing::default() });
            }
            left -= 1;
        }
    }
}

impl Protocol for Gossip {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.names.begin(context.random());
    }
}

impl Serves<Publish> for Gossip {
    fn serve(
        &mut self,
        Publish { port }: Publish,
        question: &Question<'_, Publish>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        if !fits(question.body, context) {
            return Some(Taken::TooLong);
        }
        let name = self.names.give(context.node());
        let rumour = Rumour { name, port, hops_left: self.config.hops_max };
        self.push(&rumour, question.body, None, context);
        Some(Taken::UnderWay)
    }
}

impl Handles<Rumour> for Gossip {
    fn handle(
        &mut self,
        rumour: Rumour,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let Rumour { name, port, hops_left } = rumour;
        if !self.names.is_new(name, context.node()) {
            return;
        }
        context.tell(&Published { from: name.source, port }, reception.body);
        if let Some(hops_left) = hops_left.min(self.config.hops_max).checked_sub(1) {
            let rumour = Rumour { hops_left, ..rumour };
            self.push(&rumour, reception.body, Some(reception.from), context);
        }
    }
}

impl Hears<LinkUp> for Gossip {
    fn hear(&mut self, up: LinkUp, _: &[u8], _: &mut Context<'_, Self>) {
        let room = self.neighbours.len() < self.config.neighbours_max;
        if room && !self.neighbours.contains(&up.neighbour) {
            self.neighbours.push(up.neighbour);
        }
    }
}

impl Hears<LinkDown> for Gossip {
    fn hear(&mut self, down: LinkDown, _: &[u8], _: &mut Context<'_, Self>) {
        self.neighbours.retain(|neighbour| *neighbour != down.neighbour);
    }
}
