//! Tickets to pages of machines: proofs, in a page's path, of who opened it.
//!
//! A ticket is a code over the sign-in and the machine (HMAC-SHA256, of which the first 128 bits: RFC 2104 §5) with a key
//! of the hub's. So no table of tickets is there to be filled, and two browsers, or two pages, never have the same
//! one.

use core::fmt;
use core::str::FromStr;

use data_encoding::HEXLOWER;
use tenure_crypto::{Seed, equal, hmac_sha256};
use tenure_wire::Target;

use crate::api::sign_in::Session;

const CODE_BYTES: usize = 16;
const DAY_S: u64 = 24 * 60 * 60;

/// Makes tickets, and judges them.
#[derive(Clone)]
pub(super) struct Tickets {
    key: Seed,
}

/// Who opens a page.
pub(super) enum Proof<'a> {
    /// A browser that is signed in.
    Session(&'a Session),
    /// Somebody who isn't, at this time.
    Stranger { unix_s: u64 },
}

/// What a ticket says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The number of the sign-in that it was made for, if it was for one.
    pub(super) session: Option<i64>,
    /// The day since 1970 on which a stranger's was made.
    day: u64,
    code: [u8; CODE_BYTES],
}

impl Tickets {
    pub(super) fn new(key: Seed) -> Self {
        Self { key }
    }

    /// The ticket to the page of `machine` of who has this proof: always the same one, so that a browser keeps what it
    /// may keep of the page.
    pub(super) fn make(&self, proof: &Proof<'_>, machine: &Target) -> Ticket {
        match proof {
            Proof::Session(session) => Ticket {
                session: Some(session.id),
                day: 0,
                code: self.of_session(session, machine),
            },
            Proof::Stranger { unix_s } => {
                let day = unix_s / DAY_S;
                Ticket { session: None, day, code: self.of_stranger(day, machine) }
            }
        }
    }

    /// Whether a ticket opens the page of `machine` now. `session` is the one that it names, if that is still open; a
    /// stranger's is good on its day and on the next.
    pub(super) fn is_good(
        &self,
        ticket: &Ticket,
        session: Option<&Session>,
        machine: &Target,
        unix_s: u64,
    ) -> bool {
        let code = match (ticket.session, session) {
            (Some(_), None) => return false,
            (Some(_), Some(session)) => self.of_session(session, machine),
            (None, _) => {
                let today = unix_s / DAY_S;
                if !(today.saturating_sub(1)..=today).contains(&ticket.day) {
                    return false;
                }
                self.of_stranger(ticket.day, machine)
            }
        };
        equal(&code, &ticket.code)
    }

    fn of_session(&self, session: &Session, machine: &Target) -> [u8; CODE_BYTES] {
        self.code(&[b"session", &session.secret_hash, machine.to_string().as_bytes()])
    }

    fn of_stranger(&self, day: u64, machine: &Target) -> [u8; CODE_BYTES] {
        self.code(&[b"stranger", &day.to_le_bytes(), machine.to_string().as_bytes()])
    }

    fn code(&self, parts: &[&[u8]]) -> [u8; CODE_BYTES] {
        let mut code = [0; CODE_BYTES];
        code.copy_from_slice(&hmac_sha256(self.key.as_bytes(), parts)[..CODE_BYTES]);
        code
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session {
            Some(id) => write!(f, "s{id}-")?,
            None => write!(f, "g{}-", self.day)?,
        }
        f.write_str(&HEXLOWER.encode(&self.code))
    }
}

/// The text is no ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTicket;

impl FromStr for Ticket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Self, NoTicket> {
        let (whose, code) = text.split_once('-').ok_or(NoTicket)?;
        let code = HEXLOWER.decode(code.as_bytes()).map_err(|_| NoTicket)?;
        let code = code.try_into().map_err(|_| NoTicket)?;
        let (session, day) = match whose.split_at_checked(1).ok_or(NoTicket)? {
            ("s", id) => (Some(id.parse().map_err(|_| NoTicket)?), 0),
            ("g", day) => (None, day.parse().map_err(|_| NoTicket)?),
            _ => return Err(NoTicket),
        };
        let ticket = Self { session, day, code };
        // One form of each, so that a path has one meaning.
        if ticket.to_string() == text { Ok(ticket) } else { Err(NoTicket) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: i64, secret: u8) -> Session {
        Session { id, who: "key".into(), secret_hash: [secret; 32] }
    }

    fn machine(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn ticket_opens_one_page_for_the_sign_in_that_it_was_made_for() {
        let tickets = Tickets::new(Seed::from_bytes(&[7; 32]));
        let (mine, panel) = (session(17, 1), machine("panel@attic"));
        let ticket = tickets.make(&Proof::Session(&mine), &panel);
        let read: Ticket = ticket.to_string().parse().unwrap();
        assert_eq!(read, ticket);
        assert_eq!(tickets.make(&Proof::Session(&mine), &panel), ticket);
        assert!(tickets.is_good(&read, Some(&mine), &panel, 0));
        assert!(!tickets.is_good(&read, None, &panel, 0), "signed out");
        // The number of a sign-in that ended may be another's by now.
        assert!(!tickets.is_good(&read, Some(&session(17, 2)), &panel, 0));
        assert!(!tickets.is_good(&read, Some(&mine), &machine("panel@barn"), 0));
        assert!(!tickets.is_good(&read, Some(&mine), &machine("lock@attic"), 0));
        let others = Tickets::new(Seed::from_bytes(&[8; 32]));
        assert!(!others.is_good(&read, Some(&mine), &panel, 0), "of another hub");
        let forged = Ticket { session: None, ..read };
        assert!(!tickets.is_good(&forged, Some(&mine), &panel, 0));
    }

    #[test]
    fn ticket_of_a_stranger_is_good_for_two_days_at_most() {
        let (tickets, panel, day) =
            (Tickets::new(Seed::from_bytes(&[7; 32])), machine("panel@attic"), 20_000 * DAY_S);
        let ticket = tickets.make(&Proof::Stranger { unix_s: day + 7 }, &panel);
        let read: Ticket = ticket.to_string().parse().unwrap();
        for (unix_s, is_good) in
            [(day - 1, false), (day, true), (day + 2 * DAY_S - 1, true), (day + 2 * DAY_S, false)]
        {
            assert_eq!(tickets.is_good(&read, None, &panel, unix_s), is_good, "{unix_s}");
        }
        let longer = Ticket { day: read.day + 1, ..read };
        assert!(!tickets.is_good(&longer, None, &panel, day + DAY_S));
    }

    #[test]
    fn text_that_is_no_ticket_is_none() {
        const CODE: &str = "00112233445566778899aabbccddeeff";
        for text in [
            "",
            "-",
            "s17",
            "17-CODE",
            "s-CODE",
            "s17-CODE00",
            "s17-00",
            "s017-CODE",
            "s+17-CODE",
            "g-1-CODE",
            "ü17-CODE",
            "s17-00112233445566778899AABBCCDDEEFF",
            "g99999999999999999999999-CODE",
        ] {
            let text = text.replace("CODE", CODE);
            assert_eq!(text.parse::<Ticket>(), Err(NoTicket), "{text}");
        }
        assert!(format!("s17-{CODE}").parse::<Ticket>().is_ok());
    }
}
