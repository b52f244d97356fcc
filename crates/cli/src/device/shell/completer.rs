//! Words that Tab completes in `tenure shell`: commands, their options, machines and functions.

use std::cell::RefCell;
use std::rc::Rc;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tenure_wire::control::MachineStatus;
use tenure_wire::printable::misleads;

use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machines};

/// The words of a shell on one device.
pub(super) struct Words {
    commands: clap::Command,
    place: Where,
    client: Rc<RefCell<Client>>,
    device: RefCell<Device>,
}

impl Words {
    /// The words of these commands, on `device`, which is at `place` and with which `client` speaks.
    pub(super) fn new(
        commands: clap::Command,
        place: Where,
        client: Rc<RefCell<Client>>,
        device: Device,
    ) -> Self {
        Self { commands, place, client, device: RefCell::new(device) }
    }

    /// The machines that are there now; none if the device doesn't answer.
    fn machines(&self) -> Vec<MachineStatus> {
        let (client, device) = (&mut *self.client.borrow_mut(), &mut *self.device.borrow_mut());
        machines(client, device).unwrap_or_else(|_| {
            // It may have restarted since.
            let Ok(again) = self.place.connect(client) else { return Vec::new() };
            *device = again;
            machines(client, device).unwrap_or_default()
        })
    }
}

impl Helper for Words {}

impl Highlighter for Words {}

impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let words: Vec<&str> = before[..start].split_whitespace().collect();
        let candidates = candidates(&self.commands, &words, &before[start..], || self.machines());
        // The next word can be typed at once.
        let pairs = candidates
            .into_iter()
            .map(|word| Pair { replacement: format!("{word} "), display: word });
        Ok((start, pairs.collect()))
    }
}

/// The words that may stand after `words` and begin with `begun`.
pub(super) fn candidates(
    commands: &clap::Command,
    words: &[&str],
    begun: &str,
    machines: impl FnOnce() -> Vec<MachineStatus>,
) -> Vec<String> {
    let (mut command, mut depth) = (commands, 0);
    while let Some(below) = words.get(depth).and_then(|word| command.find_subcommand(word)) {
        (command, depth) = (below, depth + 1);
    }
    let is_option = |word: &&&str| word.starts_with('-');
    let positions = words[depth..].iter().filter(|word| !is_option(word)).count();
    let mut found: Vec<String> = Vec::new();
    if begun.starts_with('-') {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        found.extend(options.map(|option| format!("--{option}")));
    } else {
        if positions == 0 {
            let below = command.get_subcommands().filter(|below| !below.is_hide_set());
            found.extend(below.map(|below| below.get_name().to_string()));
        }
        let argument = command.get_positionals().nth(positions).map(|argument| argument.get_id());
        match argument.map(clap::Id::as_str) {
            Some("machine") => {
                found.extend(machines().iter().map(|machine| machine.name.to_string()));
            }
            Some("function") => {
                let named = words.last().copied().unwrap_or_default();
                let machines = machines();
                let machine = machines.iter().find(|machine| machine.name.as_str() == named);
                let functions = machine.into_iter().flat_map(crate::machine::list::completable);
                found.extend(functions.map(str::to_string));
            }
            _ => {}
        }
    }
    // A device tells names of functions as it likes, and the terminal would obey what is in them.
    found.retain(|word| word.starts_with(begun) && !word.chars().any(misleads));
    found.sort();
    found
}
