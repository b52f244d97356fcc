//! Lies of a member that has turned bad: false lines in its own name, false lives and versions in others'.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::frame::Header;
use tenure_mesh::{
    Context, Declared, Destination, Dispatcher, Framer, FramerConfig, Handles, NodeId, Outgoing,
    Protocol, Question, Reception, Serves, Unsealed, encode,
};
use tenure_protocols::babel::table::{Distance, Entry, Seqno};
use tenure_protocols::babel::{Babel, Hello, Update};
use tenure_protocols::forwarding::{Acknowledgement, Busy, Datagram};
use tenure_protocols::interface::{SendDatagram, Taken};

use super::scenario::Lie;

/// The metric of the ways that are made up: shorter than any true one.
const METRIC: u16 = 1;
/// By how much sequence numbers are made up that are ahead.
const AHEAD: u32 = 1_000;
/// How many frames in another's name are numbered beyond the true ones.
const FRAMES_AHEAD: u32 = 1 << 30;
const HELLO: u8 = 1;

/// Forwarding that acknowledges everything, and drops it.
#[derive(Debug)]
pub(super) struct Hole;

/// A datagram, as it goes on the air.
#[derive(Serialize, Deserialize)]
struct Swallowed(Datagram);

/// Its acknowledgement.
#[derive(Serialize, Deserialize)]
struct Answer(Acknowledgement);

tenure_mesh::protocol! {
    Hole = 2, "black hole";
    messages { Swallowed = 1, Answer = 2 }
    serves { SendDatagram }
}

impl Protocol for Hole {}

impl Handles<Swallowed> for Hole {
    fn handle(
        &mut self,
        Swallowed(Datagram { hop, sending, .. }): Swallowed,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        if reception.addressed {
            context.send(reception.from, &Answer(Acknowledgement { hop, sending }));
        }
    }
}

impl Handles<Answer> for Hole {
    fn handle(&mut self, _: Answer, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

impl Serves<SendDatagram> for Hole {
    fn serve(
        &mut self,
        _: SendDatagram,
        _: &Question<'_, SendDatagram>,
        _: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        Some(Taken::UnderWay)
    }
}

/// Forwarding that has no room, whatever comes.
#[derive(Debug)]
pub(super) struct Full;

/// A datagram, and the word that there is no room for it, as they go on the air.
#[derive(Serialize, Deserialize)]
struct Refused(Datagram);

#[derive(Serialize, Deserialize)]
struct Refusal(Busy);

tenure_mesh::protocol! {
    Full = 2, "full for ever";
    messages { Refused = 1, Refusal = 4 }
    serves { SendDatagram }
}

impl Protocol for Full {}

impl Handles<Refused> for Full {
    fn handle(
        &mut self,
        Refused(Datagram { hop, .. }): Refused,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        if reception.addressed {
            context.send(reception.from, &Refusal(Busy { hop }));
        }
    }
}

impl Handles<Refusal> for Full {
    fn handle(&mut self, _: Refusal, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

impl Serves<SendDatagram> for Full {
    fn serve(
        &mut self,
        _: SendDatagram,
        _: &Question<'_, SendDatagram>,
        _: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        Some(Taken::UnderWay)
    }
}

/// Tells neighbours lines that are none of the table's, for the time of that `number`.
pub(super) fn tell_lines(
    lie: Lie,
    number: u32,
    lives: &[(NodeId, u32)],
    babel: &Babel,
    context: &mut Context<'_, Babel>,
) {
    let mut body = Vec::new();
    for (destination, life) in lives {
        let destination = *destination;
        let honest = babel.table().feasibility(destination).map(|distance| distance.seqno);
        let honest = honest.unwrap_or(Seqno { boot: *life, number: 0 });
        let seqno = match lie {
            Lie::Ways => honest,
            Lie::Numbers => Seqno { number: honest.number.saturating_add(AHEAD), ..honest },
            Lie::LastNumbers => Seqno { boot: u32::MAX, number: u32::MAX },
            Lie::Hole | Lie::Busy | Lie::Lives | Lie::Versions => return,
        };
        if destination != context.node() {
            encode(&Entry { destination, distance: Distance { seqno, metric: METRIC } }, &mut body);
        }
    }
    // Behind what is known of its table, so that it is looked at.
    let after = babel.table().version().saturating_add(number);
    let update = Update { boot: babel.life(), after, to: after.saturating_add(1) };
    context.transmit(&update, Outgoing { body: &body, ..Outgoing::default() });
}

/// A frame in the name of `other`, whose life is `life`, if the lie takes one.
pub(super) fn forge(
    now: Instant,
    lie: Lie,
    number: u32,
    other: NodeId,
    life: u32,
) -> Option<Vec<u8>> {
    let boot = match lie {
        Lie::Lives => u32::MAX,
        Lie::Versions => life,
        Lie::Hole | Lie::Busy | Lie::Ways | Lie::Numbers | Lie::LastNumbers => return None,
    };
    let hello = Hello {
        boot,
        sequence: number as u16,
        interval_ms: u16::MAX,
        version: u32::MAX,
        number: Some(number),
        digest: None,
        links: u8::MAX,
        lists: false,
    };
    let mut message = vec![HELLO];
    encode(&hello, &mut message);
    let mut framer = Framer::new(FramerConfig::new(other, boot, [0; 8]), Unsealed);
    let all = Destination::All;
    framer.send(now, Babel::DESCRIPTION.number, all, Duration::ZERO, &message).ok()?;
    let mut frame = Vec::new();
    framer.transmit(now, &mut frame)?;
    let (mut header, header_bytes) = Header::parse(&frame).ok()?;
    header.number.sequence = FRAMES_AHEAD + number;
    let mut forged = Vec::new();
    header.emit(&mut forged);
    forged.extend_from_slice(&frame[header_bytes..]);
    Some(forged)
}
