//! The audit log: who did what; each entry bound to the one before by a hash.
//!
//! A changed, deleted or inserted entry breaks the chain from there on. Entries that are cut off at the
//! end leave a chain that is whole and shorter: whoever keeps the last number and hash elsewhere finds
//! that, too.

use tenure_crypto::sha256;
use tenure_wire::Digest;

use super::sql::{self, Connection, Next, OptionalExtension as _, Words, params};

/// Whether entries name a person.
const HAS_PEOPLE: Words = Words::each(
    "SELECT 1 FROM pragma_table_info('audit') WHERE name = 'by'",
    "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() \
     AND table_name = 'audit' AND column_name = 'by'",
);
/// The hash before the first entry.
const START: Digest = Digest([0; 32]);

/// An event that is to be written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    /// The wall clock, in seconds since 1970 UTC.
    pub(crate) unix_s: u64,
    /// The one who did it: a key, or `hub`.
    pub(crate) who: &'a str,
    /// The person who did it in the key's name; empty for the key itself.
    pub(crate) by: &'a str,
    /// The deed.
    pub(crate) action: &'a str,
    /// The thing that it was done to.
    pub(crate) subject: &'a str,
    /// The circumstances.
    pub(crate) detail: &'a str,
    /// The owner who may read it; empty for the hub's own.
    pub(crate) owner: &'a str,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 1 on.
    pub number: u64,
    /// The hash of it and all before it.
    pub hash: Digest,
}

/// The first entry that doesn't follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its number.
    pub number: u64,
}

/// Writes `event` down behind the last entry, in the transaction that is under way.
pub(crate) fn append(connection: &Connection, event: &Event<'_>) -> Result<(), sql::Error> {
    let last = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    let last: Option<(i64, [u8; 32])> = connection
        .statement(last)
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (number, previous) = last.map_or((0, START), |(number, hash)| (number, Digest(hash)));
    let texts = [event.who, event.by, event.action, event.subject, event.detail, event.owner];
    let [who, by, action, subject, detail, owner] = texts.map(|text| connection.storable(text));
    let stored = Event {
        unix_s: event.unix_s,
        who: &who,
        by: &by,
        action: &action,
        subject: &subject,
        detail: &detail,
        owner: &owner,
    };
    let hash = hash(&previous, number + 1, &stored);
    let insert = "INSERT INTO audit (number, unix_s, who, action, subject, detail, owner, hash, \"by\") \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let Event { unix_s, who, by, action, subject, detail, owner } = stored;
    let number = number + 1;
    let row = params![number, seconds(unix_s), who, action, subject, detail, owner, hash.0, by];
    connection.statement(insert).execute(row).map(drop)
}

/// Checks the whole chain; returns its last entry, or `None` if there is none.
///
/// # Errors
/// The database fails; or inside, where the chain is broken.
pub(crate) fn verify(connection: &Connection) -> Result<Result<Option<Entry>, Broken>, sql::Error> {
    // A backup of an earlier version is read as it is, and its log knows no people.
    let by = match connection.statement(HAS_PEOPLE.of(connection.dialect())).exists([])? {
        true => "audit.\"by\"",
        false => "''",
    };
    let all = format!(
        "SELECT number, unix_s, who, action, subject, detail, owner, hash, {by} FROM audit ORDER BY number"
    );
    let (mut last, mut broken): (Option<Entry>, _) = (None, None);
    connection.statement(&all).each([], |row| {
        let text = |index: usize| row.get::<String>(index);
        let (who, action, subject) = (text(2)?, text(3)?, text(4)?);
        let (detail, owner, by) = (text(5)?, text(6)?, text(8)?);
        let number: i64 = row.get(0)?;
        let event = Event {
            unix_s: u64::try_from(row.get::<i64>(1)?).unwrap_or(0),
            who: &who,
            by: &by,
            action: &action,
            subject: &subject,
            detail: &detail,
            owner: &owner,
        };
        let previous = last.as_ref().map_or(START, |entry| entry.hash);
        let expected = last.as_ref().map_or(1, |entry| entry.number + 1);
        let hash = hash(&previous, number, &event);
        let number = u64::try_from(number).unwrap_or(0);
        if number != expected || row.get::<[u8; 32]>(7)? != hash.0 {
            broken = Some(Broken { number: expected });
            return Ok(Next::Enough);
        }
        last = Some(Entry { number, hash });
        Ok(Next::Row)
    })?;
    Ok(broken.map_or(Ok(last), Err))
}

/// SHA-256 of the hash before, the number, the time and each text with its length before it: the person last, if there is
/// one, so that entries of before people have the hash that they had.
fn hash(previous: &Digest, number: i64, event: &Event<'_>) -> Digest {
    let mut bytes = Vec::from(previous.0);
    bytes.extend(number.to_le_bytes());
    bytes.extend(seconds(event.unix_s).to_le_bytes());
    let of_person = (!event.by.is_empty()).then_some(event.by);
    let texts = [event.who, event.action, event.subject, event.detail, event.owner];
    for text in texts.into_iter().chain(of_person) {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    sha256(&[&bytes])
}

/// Seconds as the database stores them; no clock comes near the end.
pub(crate) fn seconds(unix_s: u64) -> i64 {
    i64::try_from(unix_s).unwrap_or(i64::MAX)
}
