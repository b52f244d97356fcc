//! E-mail: what becomes of an alarm, told to mailboxes of the operator's file by a server of SMTP (RFC 5321).
//!
//! Invariants:
//! - A mail has the same `Message-ID` with each try, and later states of an alarm are replies to its first (RFC 5322 §3.6.4).
//! - What a device, a tenant or a person wrote stands on lines of the text alone: it makes no header and no line of its own.
//! - Connections are those of [`Dialer`](tenure_reach::Dialer): a name leads to the public network alone.
//! - No error has a password, nor what a server answered to one.

mod session;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use lettre::Message;
use lettre::address::Envelope;
use lettre::message::header::{self, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Mailboxes, MessageBuilder, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use tenure_crypto::sha256;
use tenure_reach::{Dialer, Reach};
use tenure_wire::printable::printable;
use tenure_wire::url::Host;
use tenure_wire::{MachineId, Name};

use super::place::on;
use super::queue::{CLAIMED_S, Outcome, Refusal, Told, Waiting};

/// How long a mail takes at most from when it is to be sent, in milliseconds. A server within its own patience may take longer
/// (RFC 5321 §4.5.3.2); the mail is tried again then.
const MAIL_MS: u64 = 50_000;
const _: () = assert!(CLAIMED_S.unsigned_abs() * 1_000 > 2 * MAIL_MS);
/// The most mails that wait for a server's thread.
const WAITING_MAX: usize = 16;

/// Mailboxes that are told of alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    /// The name by which rules mean it.
    pub name: Name,
    /// The server that takes mails: its name, or its address.
    pub server: Host,
    /// Its port.
    pub port: u16,
    /// How the connection is secured.
    pub security: EmailSecurity,
    /// The authorities that its certificate is judged by, in DER; without them, by the system's.
    pub authorities: Option<Vec<Vec<u8>>>,
    /// What it is shown, if it asks who comes.
    pub credentials: Option<EmailCredentials>,
    /// Whom mails are from.
    pub from: EmailAddress,
    /// Whom they are to, all of them in one mail.
    pub to: Vec<EmailAddress>,
}

/// How a connection to a server of mails is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmailSecurity {
    /// By TLS from the first byte on (RFC 8314 §3.3).
    Implicit,
    /// By TLS that begins with `STARTTLS` (RFC 3207); without it no mail and no password goes on.
    StartTls,
    /// Not at all.
    None,
}

/// A user's name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct EmailCredentials(Credentials);

/// An address, maybe with a person's name: `Ops <ops@example.org>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAddress(Mailbox);

/// A text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address is like `ops@example.org` or `Ops <ops@example.org>`, one alone")]
pub struct NoEmailAddress;

impl EmailCredentials {
    /// Those of `user`.
    pub fn new(user: String, password: String) -> Self {
        Self(Credentials::new(user, password))
    }
}

impl fmt::Debug for EmailCredentials {
    /// Without both.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmailCredentials")
    }
}

impl FromStr for EmailAddress {
    type Err = NoEmailAddress;

    fn from_str(text: &str) -> Result<Self, NoEmailAddress> {
        let text = text.trim();
        // No character of a person's name begins another line.
        if text.chars().any(char::is_control) {
            return Err(NoEmailAddress);
        }
        let mailbox: Mailbox = text.parse().map_err(|_| NoEmailAddress)?;
        let address: &str = mailbox.email.as_ref();
        // The parser leaves what stands behind an address.
        let is_whole = text == address || text.ends_with(&format!("<{address}>"));
        // What isn't ASCII needs an extension that few servers have (RFC 6531).
        let is_good = is_whole && address.is_ascii();
        // A mail is written from what it is written as.
        let is_same = mailbox.to_string().parse() == Ok(mailbox.clone());
        if is_good && is_same { Ok(Self(mailbox)) } else { Err(NoEmailAddress) }
    }
}

/// `Auto-Submitted` (RFC 3834 §5): nobody answers by a machine.
#[derive(Clone, Copy)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".into())
    }
}

/// The mail that tells what became of an alarm.
fn mail(email: &Email, told: &Told) -> Result<Message, lettre::error::Error> {
    let Told { timestamp, data, .. } = told;
    let line = |text: &str| printable(text);
    let (rule, state) = (line(&data.rule), line(&data.state));
    let device = line(on(&data.device));
    let id = |state: &str| format!("<{}.{state}@{}>", key(told), email.from.0.email.domain());
    let to: Vec<Mailbox> = email.to.iter().map(|to| to.0.clone()).collect();
    let addresses = email.to.iter().map(|to| to.0.email.clone()).collect();
    let mut builder = MessageBuilder::new()
        .envelope(Envelope::new(Some(email.from.0.email.clone()), addresses)?)
        .from(email.from.0.clone())
        .mailbox(header::To::from(Mailboxes::from(to)))
        .subject(format!("{rule} on {device}: {state}"))
        .message_id(Some(id(&state)))
        .header(AutoSubmitted);
    if let Ok(at) = humantime::parse_rfc3339(timestamp) {
        builder = builder.date(at);
    }
    if data.state != "raised" {
        builder = builder.in_reply_to(id("raised")).references(id("raised"));
    }
    let mut lines = vec![
        format!("Alarm {} is {state}.", data.id),
        String::new(),
        format!("Rule:     {rule} ({})", line(&data.condition)),
        format!("Device:   {device}"),
        format!("Seen:     {}", line(&data.detail)),
        format!("Raised:   {}", line(&data.raised)),
        format!("Owner:    {}", line(&data.owner)),
    ];
    if let Some(acknowledged) = &data.acknowledged {
        let (by, word) = (line(&acknowledged.by), line(&acknowledged.word));
        lines.push(format!("Looked after by {by}: {word}"));
    }
    if let Some(url) = &data.url {
        lines.extend([String::new(), line(url)]);
    }
    lines.push(String::new());
    builder.singlepart(SinglePart::plain(lines.join("\n")))
}

/// What an alarm is told from all others by, of this hub and of others.
fn key(told: &Told) -> String {
    let data = &told.data;
    let id = data.id.to_string();
    let parts = [&id, &data.rule, &data.owner, &data.device, &data.raised];
    let parts: Vec<&[u8]> = parts.iter().flat_map(|part| [part.as_bytes(), &b"\n"[..]]).collect();
    HEXLOWER.encode(&sha256(&parts).0[..16])
}

/// A mail that a server's thread has.
struct Job {
    waiting: Waiting,
    until: Instant,
}

/// The threads that send mails, one for each server of the file that had one.
pub(super) struct Mails {
    threads: BTreeMap<Name, SyncSender<Job>>,
    ends: Receiver<Outcome>,
    /// Lent to the threads.
    sender: Sender<Outcome>,
}

impl Mails {
    pub(super) fn new() -> Self {
        let (sender, ends) = channel();
        Self { threads: BTreeMap::new(), ends, sender }
    }

    /// Sends a message, if its receiver is one of `known`; gives it back otherwise.
    pub(super) fn send(
        &mut self,
        reach: &Reach,
        known: &[Email],
        waiting: Waiting,
    ) -> Option<Waiting> {
        let named = |(_, email): &(usize, &Email)| email.name.as_str() == waiting.target;
        let Some((index, email)) = known.iter().enumerate().find(named) else {
            return Some(waiting);
        };
        let jobs = match self.threads.get(&email.name) {
            Some(jobs) => jobs.clone(),
            None => match self.start(reach, index, email) {
                Ok(jobs) => {
                    self.threads.insert(email.name.clone(), jobs.clone());
                    jobs
                }
                Err(error) => {
                    let words = format!("the system has no thread: {error}");
                    self.end(waiting, Err(Refusal::passing(words)));
                    return None;
                }
            },
        };
        let job = Job { waiting, until: Instant::now() + Duration::from_millis(MAIL_MS) };
        if let Err(error) = jobs.try_send(job) {
            let (TrySendError::Full(Job { waiting, .. })
            | TrySendError::Disconnected(Job { waiting, .. })) = error;
            let words = format!("{WAITING_MAX} mails wait for this server already");
            self.end(waiting, Err(Refusal::passing(words)));
        }
        None
    }

    /// What came of the mails that have ended.
    pub(super) fn ended(&mut self) -> Vec<Outcome> {
        self.ends.try_iter().collect()
    }

    /// The thread of a server; it ends once this is dropped.
    fn start(
        &self,
        reach: &Reach,
        index: usize,
        email: &Email,
    ) -> std::io::Result<SyncSender<Job>> {
        let (jobs, coming) = sync_channel::<Job>(WAITING_MAX);
        // Told from webhooks, whose numbers begin at 0.
        let mut from = MachineId([0xFF; 12]);
        from.0[..8].copy_from_slice(&(index as u64).to_be_bytes());
        let (dialer, sender, email) = (reach.dialer(from), self.sender.clone(), email.clone());
        let run = move || {
            for Job { waiting, until } in coming {
                let result = deliver(&dialer, &email, &waiting, until);
                // Nobody waits for it once the hub ends; the message is still in the queue.
                let _ = sender.send(Outcome { waiting, result });
            }
        };
        std::thread::Builder::new().name("mails".into()).spawn(run)?;
        Ok(jobs)
    }

    fn end(&self, waiting: Waiting, result: Result<(), Refusal>) {
        // The receiver is this one's own.
        let _ = self.sender.send(Outcome { waiting, result });
    }
}

fn deliver(
    dialer: &Dialer,
    email: &Email,
    waiting: &Waiting,
    until: Instant,
) -> Result<(), Refusal> {
    let told = Told::read(&waiting.body);
    let mail = told.and_then(|told| mail(email, &told).ok());
    let Some(mail) = mail else {
        return Err(Refusal { words: "the message can't be made a mail".into(), is_final: true });
    };
    session::send(dialer, email, &mail, until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email() -> Email {
        Email {
            name: "ops".parse().unwrap(),
            server: "mail.example".parse().unwrap(),
            port: 465,
            security: EmailSecurity::Implicit,
            authorities: None,
            credentials: Some(EmailCredentials::new("hub".into(), "hunter2".into())),
            from: "Hub <hub@example.org>".parse().unwrap(),
            to: vec!["ops@example.org".parse().unwrap(), "Ada <ada@example.org>".parse().unwrap()],
        }
    }

    fn told(state: &str, text: &str) -> Told {
        let body = serde_json::json!({
            "type": format!("alarm.{state}"),
            "timestamp": "2026-11-27T22:00:10Z",
            "data": {
                "id": 7, "rule": format!("away{text}"), "condition": "silent > 10m", "owner": "key",
                "device": format!("attic{text}"), "detail": format!("silent{text}"), "state": state,
                "raised": "2026-11-27T22:00:10Z",
                "acknowledged": { "by": format!("Ada{text}"), "word": format!("on it{text}") },
            },
        });
        Told::read(&body.to_string()).unwrap()
    }

    fn sent(told: &Told) -> (Vec<String>, String) {
        let mail = String::from_utf8(mail(&email(), told).unwrap().formatted()).unwrap();
        let (head, text) = mail.split_once("\r\n\r\n").unwrap();
        // A line that begins with a space goes on with the one before (RFC 5322 §2.2.3).
        let head = head.replace("\r\n ", " ");
        (head.split("\r\n").map(String::from).collect(), text.into())
    }

    /// Desk 3: a mail leads to what it tells of.
    #[test]
    fn mail_of_a_hub_whose_pages_have_an_address_ends_with_that_of_the_device() {
        let mut told = told("raised", "");
        assert!(!sent(&told).1.contains("http"), "no address is made up");
        told.data.url = Some("https://hub.example/devices/attic".into());
        let text = sent(&told).1;
        assert!(text.trim_end().ends_with("\r\n\r\nhttps://hub.example/devices/attic"), "{text}");
    }

    #[test]
    fn later_state_of_an_alarm_is_a_reply_to_its_first_mail() {
        let (first, _) = sent(&told("raised", ""));
        let again = sent(&told("raised", "")).0;
        let (over, text) = sent(&told("over", ""));
        let field = |head: &[String], name: &str| {
            let mut values = head.iter().filter_map(|line| line.strip_prefix(name));
            values.next().map(String::from)
        };
        let id = field(&first, "Message-ID: ").unwrap();
        assert!(id.starts_with('<') && id.ends_with(".raised@example.org>"), "{id}");
        assert_eq!(first, again, "each try is the same mail");
        assert_eq!(field(&first, "In-Reply-To: "), None);
        assert_ne!(field(&over, "Message-ID: "), Some(id.clone()));
        assert_eq!(field(&over, "In-Reply-To: "), Some(id.clone()));
        assert_eq!(field(&over, "References: "), Some(id));
        assert_eq!(field(&over, "Subject: ").as_deref(), Some("away on attic: over"));
        assert_eq!(field(&over, "Date: ").as_deref(), Some("Fri, 27 Nov 2026 22:00:10 +0000"));
        assert_eq!(field(&over, "Auto-Submitted: ").as_deref(), Some("auto-generated"));
        assert!(text.contains("Looked after by Ada: on it\r\n"), "{text}");
        let mut other = told("over", "");
        other.data.id = 8;
        assert_ne!(field(&sent(&other).0, "In-Reply-To: "), field(&over, "In-Reply-To: "));
    }

    #[test]
    fn text_of_a_device_or_a_person_makes_no_header_no_line_and_no_end_of_the_mail() {
        let (plain, text) = sent(&told("acknowledged", ""));
        let names = |head: &[String]| -> Vec<String> {
            head.iter().map(|line| line.split(':').next().unwrap().to_string()).collect()
        };
        for evil in [
            "\r\nBcc: mallory@example.net",
            "\nBcc: mallory@example.net",
            "\r\n.\r\nRCPT TO:<mallory@example.net>\r\n",
            "\u{85}Bcc: mallory@example.net",
            "\u{2028}Bcc: mallory@example.net",
            "\r\n\r\nBcc: mallory@example.net",
        ] {
            let (head, longer) = sent(&told("acknowledged", evil));
            assert_eq!(names(&head), names(&plain), "{evil:?}");
            let undone = longer.replace("=\r\n", "");
            assert_eq!(undone.matches("\r\n").count(), text.matches("\r\n").count(), "{longer}");
            assert!(!longer.contains("\r\n.\r\n"), "{longer}");
        }
    }

    #[test]
    fn address_is_one_alone_and_has_no_line_of_its_own() {
        for good in ["a@example.org", " Ops <a@example.org> ", "\"Ops, all\" <a@example.org>"] {
            assert!(good.parse::<EmailAddress>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "a@",
            "a@example.org, b@example.org",
            "a@example.org b",
            "a@example.org\r\nBcc: b@example.org",
            "Ops\r\n <a@example.org>",
            "ä@example.org",
        ] {
            assert_eq!(bad.parse::<EmailAddress>(), Err(NoEmailAddress), "{bad}");
        }
    }

    #[test]
    fn what_is_written_of_a_receiver_has_no_password() {
        let written = format!("{:?}", email());
        assert!(!written.contains("hunter2") && !written.contains("\"hub\""), "{written}");
    }
}
