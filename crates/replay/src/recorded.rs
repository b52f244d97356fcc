//! A node whose run may be recorded.

use tenure_hal::{Flash, Instant, Peripheral};
use tenure_node::{
    AttachError, BootError, Config, Door, Input, Moment, Node, Outlet, Output, Parts, Taken,
};

use crate::entry::{Entry, Noted, NotedOutlet, When, digest_of_output, digest_of_taken};
use crate::tape::{Drawn, Tape, digest_of_flash};

/// A node and, if its run is recorded, the tape.
pub struct Recorded<F> {
    node: Node<F>,
    tape: Option<Tape>,
}

impl<F: Flash> Recorded<F> {
    /// Boots a node as [`Node::boot`] does, onto `tape` if there is one. Its `config` must follow from the settings
    /// on the tape, and asks for no heap.
    ///
    /// # Errors
    /// The node's.
    pub fn boot(
        config: Config,
        parts: Parts<F>,
        moment: &mut Moment<'_>,
        tape: Option<Tape>,
    ) -> Result<Self, BootError> {
        let Some(tape) = tape else {
            return Ok(Self { node: Node::boot(config, parts, moment)?, tape: None });
        };
        let when = When::of(moment);
        let (booted, entropy) = drawing(&tape, moment, |moment| Node::boot(config, parts, moment));
        tape.write(&Entry::Boot { when, entropy: &entropy });
        Ok(Self { node: booted?, tape: Some(tape) })
    }

    /// The node, to be looked at.
    pub fn node(&self) -> &Node<F> {
        &self.node
    }

    /// The node, to be lent parts of the board. Input that is handed in here isn't recorded.
    pub fn lend(&mut self) -> &mut Node<F> {
        &mut self.node
    }

    /// The tape, if the run is recorded.
    pub fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Takes a peripheral into use, as [`Node::attach`] does; on a tape it must be [watched](Tape::watch).
    ///
    /// # Errors
    /// As [`AttachError`] says.
    pub fn attach(
        &mut self,
        now: Instant,
        peripheral: Box<dyn Peripheral + Send>,
    ) -> Result<(), AttachError> {
        if let Some(tape) = &self.tape {
            tape.write(&Entry::Attach { now_us: now.as_micros(), name: peripheral.name() });
        }
        self.node.attach(now, peripheral)
    }

    /// Ends the node and returns its flash, to boot it anew, and the tape to go on with.
    pub fn into_parts(self) -> (Parts<F>, Option<Tape>) {
        (self.node.into_parts(), self.tape)
    }

    /// Ends the node, and the record with it.
    pub fn finish(self) {
        let Self { node, tape } = self;
        let Some(tape) = tape else { return };
        match digest_of_flash(&mut node.into_parts()) {
            Some(flash) => tape.write(&Entry::End { flash }),
            None => tape.give_up("the flash can't be read"),
        }
        tape.flush();
    }
}

impl<F: Flash> Door for Recorded<F> {
    fn take(&mut self, moment: &mut Moment<'_>, input: Input<'_>) -> Taken {
        let Some(tape) = &self.tape else { return self.node.take(moment, input) };
        let (when, noted) = (When::of(moment), Noted::of(&input));
        let node = &mut self.node;
        let (taken, entropy) = drawing(tape, moment, |moment| node.take(moment, input));
        let (readings, digest) = (tape.readings(), digest_of_taken(&taken));
        match noted {
            Some(input) => {
                let entropy = &entropy;
                tape.write(&Entry::Take { when, input, entropy, readings, taken: digest });
            }
            None => tape.give_up("a protocol of the mesh runs on an executor of its own"),
        }
        taken
    }

    fn give(&mut self, outlet: Outlet) -> Option<Output> {
        let output = self.node.give(outlet);
        if let (Some(tape), Some(outlet)) = (&self.tape, NotedOutlet::of(outlet)) {
            tape.write(&Entry::Give { outlet, digest: output.as_ref().map(digest_of_output) });
        }
        output
    }
}

/// Runs `act` at `moment`, and returns its result and the random bytes that it drew.
fn drawing<T>(
    tape: &Tape,
    moment: &mut Moment<'_>,
    act: impl FnOnce(&mut Moment<'_>) -> T,
) -> (T, Vec<u8>) {
    let Moment { now, unix_time, .. } = *moment;
    let mut drawn = Drawn { entropy: &mut *moment.entropy, bytes: Vec::new(), has_failed: false };
    let result = act(&mut Moment { now, unix_time, entropy: &mut drawn });
    if drawn.has_failed {
        tape.give_up("the source of randomness failed");
    }
    (result, drawn.bytes)
}
