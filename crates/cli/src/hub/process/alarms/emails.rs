//! `[[email]]` of `alarms.toml`: mailboxes, the server that takes mails for them, and the password for it, which stands in a
//! file or in the environment.

use anyhow::Context as _;
use tenure_hub_server::{Email, EmailCredentials, EmailSecurity};
use tenure_wire::url::Host;
use toml::Spanned;

use super::{Mailboxes, Reader};
use crate::home::private_file;
use crate::tls::files::certificates;
use crate::written_file::nearest;

/// How a connection is secured, with the port where the file has none (RFC 8314 §3.3, RFC 6409 §3.1, RFC 5321 §4.5.4.2).
const SECURITIES: [(&str, EmailSecurity, u16); 3] = [
    ("implicit", EmailSecurity::Implicit, 465),
    ("starttls", EmailSecurity::StartTls, 587),
    ("none", EmailSecurity::None, 25),
];
/// The most mailboxes of one `[[email]]`.
const TO_MAX: usize = 32;

impl Reader<'_> {
    pub(super) fn email(&self, written: &Mailboxes) -> anyhow::Result<Email> {
        let server: Host = self.word(&written.server)?;
        let (_, security, port) = match &written.tls {
            None => SECURITIES[0],
            Some(word) => self.security(word)?,
        };
        let credentials = self.credentials(written)?;
        if security == EmailSecurity::None {
            self.may_be_plain(written, &server, credentials.is_some())?;
        }
        let authorities = written.ca.as_ref().map(|path| certificates(&self.folder.join(path)));
        let to = written.to.get_ref();
        if to.is_empty() || to.len() > TO_MAX {
            let line = self.line(&written.to.span());
            anyhow::bail!("line {line}: `to` has 1 to {TO_MAX} addresses");
        }
        let to = to.iter().map(|to| self.word(to)).collect::<anyhow::Result<_>>()?;
        Ok(Email {
            name: self.word(&written.name)?,
            server,
            port: written.port.unwrap_or(port),
            security,
            authorities: authorities.transpose()?,
            credentials,
            from: self.word(&written.from)?,
            to,
        })
    }

    fn security(
        &self,
        word: &Spanned<String>,
    ) -> anyhow::Result<(&'static str, EmailSecurity, u16)> {
        let known = SECURITIES.into_iter().find(|(name, ..)| name == word.get_ref());
        known.ok_or_else(|| {
            let meant = nearest(word.get_ref(), SECURITIES.iter().map(|(name, ..)| *name));
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            self.bad(word, &format!("is none of implicit, starttls and none{meant}"))
        })
    }

    /// Whether mails may go without TLS: to an address that is written, and a password to this computer alone.
    fn may_be_plain(
        &self,
        written: &Mailboxes,
        server: &Host,
        has_password: bool,
    ) -> anyhow::Result<()> {
        let way_out = match server {
            Host::Name(_) => {
                "without TLS would tell everybody on the way; write tls = \"implicit\" or \"starttls\", or the server's \
                 address in the place of its name"
            }
            Host::Address(address) if has_password && !address.is_loopback() => {
                "without TLS would tell everybody on the way the password; write tls = \"implicit\" or \"starttls\", or \
                 leave `user` out"
            }
            Host::Address(_) => return Ok(()),
        };
        Err(self.bad(&written.server, way_out))
    }

    /// User and password; the password is shown in no error.
    fn credentials(&self, written: &Mailboxes) -> anyhow::Result<Option<EmailCredentials>> {
        let Mailboxes { user, password, password_file, password_env, .. } = written;
        if let Some(password) = password {
            let line = self.line(&password.span());
            anyhow::bail!(
                "line {line}: no password stands in this file; write password_file or password_env"
            );
        }
        let password = match (user, password_file, password_env) {
            (None, None, None) => return Ok(None),
            (Some(_), Some(path), None) => {
                let path = self.folder.join(path.get_ref());
                let text = private_file::read_secret(&path)?;
                let text = std::str::from_utf8(&text);
                text.with_context(|| format!("{} holds no text", path.display()))?.to_string()
            }
            (Some(_), None, Some(name)) => std::env::var(name.get_ref()).map_err(|_| {
                self.bad(name, "is no variable of this process's environment, or no text")
            })?,
            (Some(user), ..) => {
                let way_out = "needs its password in one place; write password_file = \"FILE\" or password_env = \
                               \"VARIABLE\"";
                return Err(self.bad(user, way_out));
            }
            (None, ..) => {
                let way_out = "has a password and no `user`; write user = \"NAME\"";
                return Err(self.bad(&written.name, way_out));
            }
        };
        // An editor leaves a line's end behind it.
        let password = password.trim_end_matches(['\r', '\n']).to_string();
        if let (true, Some(user)) = (password.is_empty(), user) {
            return Err(self.bad(user, "has an empty password"));
        }
        let user = user.as_ref().map(|user| user.get_ref().clone()).unwrap_or_default();
        Ok(Some(EmailCredentials::new(user, password)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parse;
    use super::*;

    const RULE: &str = "[[alarm]]\nname = \"a\"\nwhen = \"silent > 1m\"\ntell = [\"ops\"]\n";

    fn read(folder: &Path, lines: &str) -> anyhow::Result<Email> {
        let text = format!(
            "{RULE}[[email]]\nname = \"ops\"\nfrom = \"hub@example.org\"\nto = [\"ops@example.org\"]\n{lines}"
        );
        Ok(parse(&text, folder, false)?.emails.remove(0))
    }

    #[test]
    fn receiver_of_mails_is_read_with_the_port_of_its_tls() {
        let folder = tempfile::tempdir().unwrap();
        private_file::replace(&folder.path().join("password"), b"hunter2\n").unwrap();
        for (tls, security, port) in [
            ("", EmailSecurity::Implicit, 465),
            ("tls = \"implicit\"\n", EmailSecurity::Implicit, 465),
            ("tls = \"starttls\"\n", EmailSecurity::StartTls, 587),
            ("tls = \"starttls\"\nport = 2525\n", EmailSecurity::StartTls, 2525),
        ] {
            let email = read(folder.path(), &format!("server = \"mail.example.org\"\n{tls}"));
            let email = email.unwrap();
            assert_eq!((email.security, email.port, email.credentials), (security, port, None));
        }
        let secret = Some(EmailCredentials::new("hub".into(), "hunter2".into()));
        let server = "server = \"mail.example.org\"\nuser = \"hub\"\n";
        let of_file = read(folder.path(), &format!("{server}password_file = \"password\""));
        assert_eq!(of_file.unwrap().credentials, secret);
        // Cargo sets it.
        let of_environment =
            read(folder.path(), &format!("{server}password_env = \"CARGO_PKG_NAME\""));
        let secret = Some(EmailCredentials::new("hub".into(), "tenure-cli".into()));
        assert_eq!(of_environment.unwrap().credentials, secret);
        for plain in ["127.0.0.1\"\nuser = \"hub\"\npassword_file = \"password\"", "10.0.0.7\""] {
            let email = read(folder.path(), &format!("tls = \"none\"\nserver = \"{plain}"));
            assert_eq!(email.unwrap().port, 25);
        }
    }

    #[test]
    fn password_that_others_may_read_is_taken_from_no_file() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        private_file::replace(&path, b"hunter2\n").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let lines =
                "server = \"mail.example.org\"\nuser = \"hub\"\npassword_file = \"password\"";
            let error = format!("{:#}", read(folder.path(), lines).unwrap_err());
            assert!(error.contains("others may read") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn receiver_that_isnt_good_is_named_with_its_line_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        private_file::replace(&folder.path().join("password"), b"hunter2\n").unwrap();
        for (lines, wanted) in [
            ("", ["line ", "missing field `server`"]),
            ("server = \"a b\"", ["line 9: `a b`", "isn't good"]),
            (
                "server = \"localhost\"\ntls = \"none\"",
                ["line 9: `localhost` without TLS", "tls ="],
            ),
            (
                "server = \"10.0.0.7\"\ntls = \"none\"\nuser = \"hub\"\npassword_file = \"password\"",
                ["line 9: `10.0.0.7` without TLS", "the password"],
            ),
            (
                "server = \"a\"\ntls = \"start-tls\"",
                ["line 10: `start-tls`", "did you mean `starttls`?"],
            ),
            (
                "server = \"a\"\nuser = \"hub\"",
                ["line 10: `hub` needs its password", "password_file"],
            ),
            (
                "server = \"a\"\nuser = \"hub\"\npassword_file = \"password\"\npassword_env = \"HOME\"",
                ["line 10: `hub`", "in one place"],
            ),
            ("server = \"a\"\npassword_env = \"HOME\"", ["line 6: `ops`", "no `user`"]),
            (
                "server = \"a\"\nuser = \"hub\"\npassword_env = \"TENURE_NO_SUCH_VARIABLE\"",
                ["line 11: `TENURE_NO_SUCH_VARIABLE`", "environment"],
            ),
            ("server = \"a\"\nuser = \"hub\"\npassword_file = \"none\"", ["can't read", "none"]),
            (
                "server = \"a\"\npassword = \"hunter2\"",
                ["line 10: no password stands", "password_file"],
            ),
            ("server = \"a\"\nca = \"none.pem\"", ["can't read", "none.pem"]),
            (
                "server = \"a\"\n[[webhook]]\nname = \"ops\"\nurl = \"https://a/\"\nsecret = \
                 \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"",
                ["line 6: `ops` names a second", "a name of its own"],
            ),
        ] {
            let error = format!("{:#}", read(folder.path(), lines).unwrap_err());
            for wanted in wanted {
                assert!(error.contains(wanted), "{lines}: {error}");
            }
            assert!(!error.contains("hunter2"), "{error}");
        }
        let from = |from: &str, to: &str| {
            let text = format!(
                "{RULE}[[email]]\nname = \"ops\"\nserver = \"a\"\nfrom = \"{from}\"\nto = [{to}]\n"
            );
            format!("{:#}", parse(&text, folder.path(), false).unwrap_err())
        };
        let good = "ops@example.org";
        assert!(
            from("ops", "\"a@b.org\"").contains("line 8: `ops` isn't good: an address is like")
        );
        assert!(from(good, "").contains("line 9: `to` has 1 to 32"));
        assert!(from(good, "\"a@b.org, c@d.org\"").contains("line 9: `a@b.org, c@d.org`"));
        assert!(from(good, "\"a@b.org\\r\\nBcc: c@d.org\"").contains("line 9: "));
    }
}
