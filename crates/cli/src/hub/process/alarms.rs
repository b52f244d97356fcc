//! `alarms.toml`: the rules by which a hub raises alarms. Whatever is wrong with it is named with its line.

mod emails;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tenure_hub_server::{
    Condition, ConditionError, RULES_MAX, Rule, Rules, SUBJECTS, Webhook, WebhookSecret,
};
use tenure_reach::{Reach, Servers};
use tenure_tls_client::{Date, Dates};
use tenure_wire::control::DateTeller;
use tenure_wire::url::{Host, Scheme};
use tenure_wire::{Label, Name, Url};
use toml::Spanned;

use crate::home::private_file;
use crate::tls::files::Authorities;
use crate::written_file::{self, nearest};

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Rules.
    #[serde(default)]
    alarm: Vec<Entry>,
    /// Servers that are told.
    #[serde(default)]
    webhook: Vec<Server>,
    /// Mailboxes that are told.
    #[serde(default)]
    email: Vec<Mailboxes>,
}

/// Mailboxes that are told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mailboxes {
    name: Spanned<String>,
    /// The server that takes mails for them.
    server: Spanned<String>,
    port: Option<u16>,
    /// `implicit`, `starttls` or `none`.
    tls: Option<Spanned<String>>,
    /// The file of the authorities that the server's certificate is judged by.
    ca: Option<PathBuf>,
    /// What the server is shown.
    user: Option<Spanned<String>>,
    /// Refused, and not shown.
    password: Option<Spanned<IgnoredAny>>,
    password_file: Option<Spanned<PathBuf>>,
    password_env: Option<Spanned<String>>,
    from: Spanned<String>,
    to: Spanned<Vec<Spanned<String>>>,
}

/// A server that is told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: Spanned<String>,
    url: Spanned<String>,
    secret: Spanned<String>,
}

/// A rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    /// What raises an alarm.
    when: Spanned<String>,
    /// The machine that it looks at.
    machine: Option<Spanned<String>>,
    /// The labels that a device carries which it is for.
    #[serde(default)]
    labels: Vec<Spanned<String>>,
    /// The names of the servers and mailboxes that are told.
    #[serde(default)]
    tell: Vec<Spanned<String>>,
}

/// The most servers and mailboxes of a file.
const RECEIVERS_MAX: usize = 16;

/// The way to the servers, which the system's authorities vouch for.
///
/// # Errors
/// There is no pair of sockets.
pub(super) fn reach() -> anyhow::Result<Reach> {
    let load = || match Authorities::load(&[]) {
        Ok(authorities) => Ok(authorities.certificates()),
        Err(error) => Err(format!("{error:#}")),
    };
    let date = || {
        let since_1970 = UNIX_EPOCH.elapsed().ok()?;
        Some(Date { since_1970, teller: DateTeller::Clock })
    };
    Reach::new(Servers::new(load), Dates::new(date)).context("no server can be told of alarms")
}

/// Reads the rules in the file at `path`, for a hub that has prices or doesn't.
///
/// # Errors
/// It can't be read, or isn't such a file; the error names the line, the word and what would be good.
pub(super) fn read(path: &Path, has_prices: bool) -> anyhow::Result<Rules> {
    let failed = || format!("can't read {}", path.display());
    let mut file = std::fs::File::open(path).with_context(failed)?;
    let is_exposed = private_file::is_exposed(&file).with_context(failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(failed)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let rules = parse(&text, folder, has_prices).with_context(|| path.display().to_string())?;
    // Whoever reads the secret of a webhook signs as the hub.
    if is_exposed && !rules.webhooks.is_empty() {
        bail!("{}", private_file::exposed(path));
    }
    Ok(rules)
}

fn parse(text: &str, folder: &Path, has_prices: bool) -> anyhow::Result<Rules> {
    let file: File = written_file::parse(text)?;
    let reader = Reader { text, folder, has_prices };
    let mut rules = Rules::default();
    for server in &file.webhook {
        let webhook = reader.webhook(server)?;
        reader.may_follow(&server.name, &rules)?;
        rules.webhooks.push(webhook);
    }
    for mailboxes in &file.email {
        let email = reader.email(mailboxes)?;
        reader.may_follow(&mailboxes.name, &rules)?;
        rules.emails.push(email);
    }
    let mut names = BTreeSet::new();
    for entry in &file.alarm {
        let rule = reader.rule(entry, &rules)?;
        if !names.insert(rule.name.clone()) {
            let again = "names a second rule; give each a name of its own";
            return Err(reader.bad(&entry.name, again));
        }
        if rules.rules.len() == RULES_MAX {
            return Err(reader.bad(&entry.name, "is one rule too many; a hub takes 64"));
        }
        rules.rules.push(rule);
    }
    if rules.rules.is_empty() {
        bail!("it has no rule; write [[alarm]] with a name and, say, when = \"silent > 10m\"");
    }
    Ok(rules)
}

/// What the words of the file are read by.
struct Reader<'a> {
    text: &'a str,
    /// Where the files that it names are.
    folder: &'a Path,
    has_prices: bool,
}

impl Reader<'_> {
    /// Whether a receiver of that name may be added to those before.
    fn may_follow(&self, name: &Spanned<String>, before: &Rules) -> anyhow::Result<()> {
        if before.tells(name.get_ref()) {
            let again = "names a second webhook or e-mail; give each a name of its own";
            return Err(self.bad(name, again));
        }
        if before.webhooks.len() + before.emails.len() == RECEIVERS_MAX {
            let many = "is one webhook or e-mail too many; a hub takes 16";
            return Err(self.bad(name, many));
        }
        Ok(())
    }

    fn webhook(&self, server: &Server) -> anyhow::Result<Webhook> {
        let url: Url = self.word(&server.url)?;
        let origin = url.origin();
        if origin.scheme == Scheme::Http && matches!(origin.host, Host::Name(_)) {
            let way_out = "would tell everybody on the way; write https://, or the server's address in the place of its name";
            return Err(self.bad(&server.url, way_out));
        }
        let secret = server.secret.get_ref().parse::<WebhookSecret>();
        let secret = secret.map_err(|error| {
            // The word is a secret, and isn't shown.
            anyhow::anyhow!("line {}: {error}", self.line(&server.secret.span()))
        })?;
        Ok(Webhook { name: self.word(&server.name)?, url, secret })
    }

    fn rule(&self, entry: &Entry, known: &Rules) -> anyhow::Result<Rule> {
        let when = self.condition(&entry.when)?;
        let machine: Option<Name> =
            entry.machine.as_ref().map(|machine| self.word(machine)).transpose()?;
        if let Some(machine) = &entry.machine
            && !when.may_name_a_machine()
        {
            let way_out = "is no part of a condition on the whole device; leave `machine` out";
            return Err(self.bad(machine, way_out));
        }
        if matches!(when, Condition::Bill { .. }) && !self.has_prices {
            let way_out = "needs prices; start the hub with --tariff, or leave the rule out";
            return Err(self.bad(&entry.when, way_out));
        }
        let labels = entry.labels.iter().map(|label| self.word::<Label>(label));
        let labels = labels.collect::<anyhow::Result<_>>()?;
        let tell = entry.tell.iter().map(|name| self.told(name, known));
        let tell = tell.collect::<anyhow::Result<_>>()?;
        Ok(Rule { name: self.word(&entry.name)?, when, machine, labels, tell })
    }

    /// The name of a webhook or an e-mail of the file.
    fn told(&self, name: &Spanned<String>, known: &Rules) -> anyhow::Result<Name> {
        if !known.tells(name.get_ref()) {
            let way_out = "is no webhook and no e-mail of this file; write [[webhook]] or [[email]] with that name";
            return Err(self.bad(name, way_out));
        }
        self.word(name)
    }

    fn condition(&self, written: &Spanned<String>) -> anyhow::Result<Condition> {
        written.get_ref().parse().map_err(|error: ConditionError| {
            let meant = match &error {
                ConditionError::Subject(word) => nearest(word, SUBJECTS.into_iter()),
                _ => None,
            };
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            anyhow::anyhow!("line {}: {error}{meant}", self.line(&written.span()))
        })
    }

    /// A word of the kind `T`.
    fn word<T: FromStr<Err: std::fmt::Display>>(
        &self,
        word: &Spanned<String>,
    ) -> anyhow::Result<T> {
        word.get_ref()
            .parse()
            .map_err(|error: T::Err| self.bad(word, &format!("isn't good: {error}")))
    }

    fn bad(&self, word: &Spanned<String>, way_out: &str) -> anyhow::Error {
        let (line, word) = (self.line(&word.span()), word.get_ref());
        anyhow::anyhow!("line {line}: `{word}` {way_out}")
    }

    /// The line of a place, from 1 on.
    fn line(&self, place: &Range<usize>) -> usize {
        let before = self.text.get(..place.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        format!("{:#}", parse(text, Path::new(""), false).unwrap_err())
    }

    #[test]
    fn file_with_the_secret_of_a_webhook_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alarms.toml");
        let rule = "[[alarm]]\nname = \"away\"\nwhen = \"silent > 10m\"\n";
        let webhook = "[[webhook]]\nname = \"ops\"\nurl = \"https://hooks.example/tenure\"\n\
                       secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n";
        for (text, mode, is_read) in [
            (rule.to_string(), 0o644, true),
            (format!("{rule}{webhook}"), 0o600, true),
            (format!("{rule}{webhook}"), 0o644, false),
            (format!("{rule}{webhook}"), 0o640, false),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path, false).is_ok(), is_read, "{mode:o}");
        }
    }

    #[test]
    fn file_of_rules_is_read() {
        let text = r#"
            [[alarm]]
            name = "away"
            when = "silent > 10m"
            labels = ["site=harbour", "floor=two"]

            [[alarm]]
            name = "old-thermostat"
            when = "version != 1.2"
            machine = "thermostat"
            tell = ["ops"]

            [[webhook]]
            name = "ops"
            url = "https://hooks.example/tenure"
            secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        "#;
        let Rules { rules, webhooks, .. } = parse(text, Path::new(""), false).unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!(rules[0].when, Condition::Silent { over_s: 600 });
        assert_eq!(rules[0].labels.len(), 2);
        assert_eq!(rules[1].machine, Some("thermostat".parse().unwrap()));
        assert_eq!(rules[1].tell, [webhooks[0].name.clone()]);
        let dear = "[[alarm]]\nname = \"dear\"\nwhen = \"bill > 5\"";
        assert!(parse(dear, Path::new(""), true).is_ok());
    }

    #[test]
    fn whatever_is_wrong_is_named_with_its_line_its_word_and_the_way_out() {
        let rule = "[[alarm]]\nname = \"a\"\n";
        for (text, wanted) in [
            ("when = \"silence > 10m\"", ["line 3: `silence`", "did you mean `silent`?"]),
            ("when = \"silent > 10\"", ["line 3: `10` is no value", "write `silent > 10m`"]),
            ("when = \"version = 1\"", ["line 3: `=` stands", "write `version != 1.2`"]),
            ("labels = []\nwhen = \"flash > 90\"", ["line 4: `90`", "write `flash > 90 %`"]),
            ("wen = \"silent > 10m\"", ["line 3", "did you mean `when`?"]),
            ("labels = []", ["line ", "missing field `when`"]),
            ("when = 10", ["line 3", "invalid type"]),
            ("when = \"bill > 5\"", ["line 3: `bill > 5` needs prices", "--tariff"]),
            (
                "when = \"flash > 9 %\"\nmachine = \"b\"",
                ["line 4: `b` is no part", "leave `machine` out"],
            ),
            ("when = \"silent > 1m\"\nlabels = [\"x\"]", ["line 4: `x`", "KEY=VALUE"]),
            (
                "when = \"silent > 1m\"\n[[alarm]]\nname = \"a\"\nwhen = \"silent > 2m\"",
                ["line 5: `a` names a second rule", "a name of its own"],
            ),
            ("when = \"silent > 1m\"\ntell = [\"ops\"]", ["line 4: `ops`", "write [[webhook]]"]),
            ("when = \"silent > 1m\"\n[alarms]", ["line 4", "did you mean `alarm`?"]),
        ] {
            let error = error(&format!("{rule}{text}"));
            for wanted in wanted {
                assert!(error.contains(wanted), "{text}: {error}");
            }
        }
        assert!(
            error("[[alarm]]\nname = \"A b\"\nwhen = \"silent > 1m\"").contains("line 2: `A b`")
        );
        assert!(error("").contains("it has no rule"));
        let server = |url: &str, secret: &str| {
            let webhook = "[[webhook]]\nname = \"a\"\n";
            error(&format!("{webhook}url = \"{url}\"\nsecret = \"{secret}\"\n"))
        };
        let short = server("https://a.example/", "whsec_MfKQ9r8GKY");
        assert!(
            short.contains("line 4: a secret is `whsec_`") && !short.contains("MfKQ"),
            "{short}"
        );
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert!(
            server("http://a.example/", secret).contains("line 3: `http://a.example/` would tell")
        );
        assert!(server("a.example", secret).contains("line 3: `a.example`"));
        // Only the rules are missing.
        assert!(server("http://127.0.0.1:9/", secret).contains("it has no rule"));
        let many: String = (0..=RULES_MAX)
            .map(|number| format!("[[alarm]]\nname = \"a{number}\"\nwhen = \"silent > 1m\"\n"))
            .collect();
        assert!(error(&many).contains("`a64` is one rule too many"));
    }
}
