//! Alarms by e-mail, against a server of mails by others (aiosmtpd).

mod world;

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tenure_hub_server::{Alarms, Email, EmailCredentials, EmailSecurity, Rules};
use tenure_testbed::{skip_without_tool, wait_until};
use tenure_wire::url::Host;
use world::watching::{noted, rule, telling, turn_until_noted};
use world::{World, now, owner};

/// A server of mails, and those that came; ended when dropped.
struct MailServer {
    process: Child,
    address: SocketAddr,
    /// The certificate that vouches for it, in DER.
    authority: Vec<u8>,
    mails: Arc<Mutex<Vec<Value>>>,
    _folder: tempfile::TempDir,
}

impl MailServer {
    /// One that secures connections as `mode` says and answers mails so; none where its program is missing, and the test
    /// counts as skipped.
    fn start(mode: &str, answers: &[&str]) -> Option<Self> {
        let Some(python) = python() else {
            skip_without_tool("aiosmtpd (Debian: python3-aiosmtpd)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("certificate"), folder.path().join("key"));
        let made = rcgen::generate_simple_self_signed([String::from("127.0.0.1")]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/mail_server.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg(mode)
            .args([certificate, key])
            .args(answers)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let came = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                came.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let authority = made.cert.der().to_vec();
        Some(Self { process, address, authority, mails, _folder: folder })
    }

    fn mails(&self) -> Vec<Value> {
        self.mails.lock().unwrap().clone()
    }

    /// The mailbox `ops` at it.
    fn email(&self, security: EmailSecurity) -> Email {
        let has_password = security != EmailSecurity::None;
        Email {
            name: "ops".parse().unwrap(),
            server: Host::Address(self.address.ip()),
            port: self.address.port(),
            security,
            authorities: Some(vec![self.authority.clone()]),
            credentials: has_password
                .then(|| EmailCredentials::new("hub".into(), "hunter2".into())),
            from: "The hub <hub@example.org>".parse().unwrap(),
            to: vec!["ops@example.org".parse().unwrap(), "Ada <ada@example.org>".parse().unwrap()],
        }
    }

    /// Takes turns at the moment `at` until as many mails came.
    fn wait_for(&self, alarms: &mut Alarms, at: u64, count: usize) {
        wait_until(|| {
            alarms.turn(at).unwrap();
            let mails = self.mails();
            if mails.len() == count { Ok(()) } else { Err(format!("{mails:?}")) }
        });
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A Python that has aiosmtpd: the first on the path, or Debian's.
fn python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let mut import = Command::new(python);
        import.args(["-c", "import aiosmtpd"]).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
}

/// The rule `away` on the attic alone, of which that mailbox is told.
fn told_at(world: &mut World, email: Email) -> Rules {
    world.write_by_hand("UPDATE devices SET labels = 'site=harbour' WHERE name = 'attic'");
    let mut away = rule("away", "silent > 20m");
    away.labels = vec!["site=harbour".parse().unwrap()];
    away.tell = vec![email.name.clone()];
    Rules { rules: vec![away], emails: vec![email], ..Rules::default() }
}

/// The value of a header of a mail.
fn header(mail: &Value, name: &str) -> Option<String> {
    let content = mail["content"].as_str().unwrap();
    let head = content.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    fields.find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
}

#[test]
fn mail_that_failed_is_sent_again_the_same_and_later_states_reply_to_it() {
    let Some(server) = MailServer::start("starttls", &["451 Later", "250 Good"]) else { return };
    let mut world = World::with_fleet();
    let rules = told_at(&mut world, server.email(EmailSecurity::StartTls));
    let at = now() + 2_000;
    let mut alarms = telling(&world, rules.clone());
    turn_until_noted(&mut alarms, &mut world, at, "message failed", 1);
    // Before its time nothing is sent again.
    server.wait_for(&mut alarms, at, 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].contains("(451): Later"), "{failed:?}");
    // The queue outlasts the process.
    drop(alarms);
    let mut alarms = telling(&world, rules);
    server.wait_for(&mut alarms, at + 10, 2);
    let mails = server.mails();
    assert_eq!(mails[0]["content"], mails[1]["content"]);
    let first = &mails[1];
    assert_eq!((&first["tls"], &first["user"]), (&true.into(), &"hub".into()));
    assert_eq!(first["from"], "hub@example.org");
    assert_eq!(first["to"], json!(["ops@example.org", "ada@example.org"]));
    assert_eq!(header(first, "Subject").as_deref(), Some("away on attic: raised"));
    assert!(first["content"].as_str().unwrap().contains("Rule:     away (silent > 20m)\r\n"));
    assert_eq!(header(first, "In-Reply-To"), None);
    let id = header(first, "Message-ID");
    assert!(id.as_ref().unwrap().ends_with("@example.org>"), "{id:?}");

    let token = world.token(&owner(1));
    let alarm = world.get("/v1/rule-alarms", &[&token]).json()["items"][0]["id"].clone();
    let path = format!("/v1/rule-alarms/{alarm}/acknowledge");
    let said = json!({ "by": "Ada", "word": "on my way\r\n.\r\nBcc: mallory@example.net" });
    assert_eq!(world.request("POST", &path, &[&token], &said.to_string()).status, 204);
    server.wait_for(&mut alarms, at + 20, 3);
    world.list_until(1, 10, "attic", at + 100_000);
    world.commit();
    alarms.turn(at + 1_030).unwrap();
    server.wait_for(&mut alarms, at + 1_100, 4);
    let mails = server.mails();
    for (mail, state) in [(&mails[2], "acknowledged"), (&mails[3], "over")] {
        let subject = header(mail, "Subject").unwrap();
        assert_eq!(subject, format!("away on attic: {state}"));
        assert_eq!(header(mail, "In-Reply-To"), id);
        assert_ne!(header(mail, "Message-ID"), id);
        assert_eq!(header(mail, "Bcc"), None);
        assert_eq!(mail["to"], first["to"]);
    }
    assert_eq!(noted(&mut world, "message failed").len(), 1);
}

#[test]
fn mail_goes_over_tls_from_the_first_byte_on_to_a_server_that_is_trusted_alone() {
    let Some(server) = MailServer::start("implicit", &["250 Good"]) else { return };
    let mut world = World::with_fleet();
    let at = now() + 2_000;
    let mut email = server.email(EmailSecurity::Implicit);
    let other = rcgen::generate_simple_self_signed([String::from("127.0.0.1")]).unwrap();
    email.authorities = Some(vec![other.cert.der().to_vec()]);
    let rules = told_at(&mut world, email);
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].contains("TLS with the server failed"), "{failed:?}");
    assert_eq!(server.mails(), Vec::<Value>::new());

    let rules = told_at(&mut world, server.email(EmailSecurity::Implicit));
    server.wait_for(&mut telling(&world, rules), at + 10, 1);
    let mail = &server.mails()[0];
    assert_eq!((&mail["tls"], &mail["user"]), (&true.into(), &"hub".into()));
}

#[test]
fn server_without_starttls_gets_neither_the_mail_nor_the_password_where_it_is_asked_for() {
    let Some(server) = MailServer::start("plain", &["250 Good"]) else { return };
    let mut world = World::with_fleet();
    let at = now() + 2_000;
    let rules = told_at(&mut world, server.email(EmailSecurity::StartTls));
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].contains("STARTTLS is not supported"), "{failed:?}");
    assert_eq!(server.mails(), Vec::<Value>::new());
    // Where the file says that none is needed, the same server takes it.
    let rules = told_at(&mut world, server.email(EmailSecurity::None));
    server.wait_for(&mut telling(&world, rules), at + 10, 1);
    assert_eq!(server.mails()[0]["tls"], false);
}

#[test]
fn mail_that_is_refused_for_good_is_sent_once() {
    let Some(server) = MailServer::start("plain", &["550 Nobody of that name"]) else { return };
    let mut world = World::with_fleet();
    let rules = told_at(&mut world, server.email(EmailSecurity::None));
    let at = now() + 2_000;
    let mut alarms = telling(&world, rules);
    turn_until_noted(&mut alarms, &mut world, at, "message given up", 1);
    assert!(noted(&mut world, "message given up")[0].contains("(550): Nobody of that name"));
    server.wait_for(&mut alarms, at + 100_000, 1);
}

#[test]
fn password_that_is_wrong_is_tried_again_and_shown_nowhere() {
    let Some(server) = MailServer::start("starttls", &["250 Good"]) else { return };
    let mut world = World::with_fleet();
    let mut email = server.email(EmailSecurity::StartTls);
    email.credentials = Some(EmailCredentials::new("hub".into(), "hunter3".into()));
    let rules = told_at(&mut world, email);
    let at = now() + 2_000;
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].ends_with("the server answered 535 to user and password"), "{failed:?}");
    assert_eq!(server.mails(), Vec::<Value>::new());
}

#[test]
fn name_that_leads_to_this_computer_is_refused() {
    let Some(server) = MailServer::start("plain", &["250 Good"]) else { return };
    let mut world = World::with_fleet();
    let mut email = server.email(EmailSecurity::None);
    email.server = "localhost".parse().unwrap();
    let rules = told_at(&mut world, email);
    let at = now() + 2_000;
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].contains("which is no address of the public network"), "{failed:?}");
    assert_eq!(server.mails(), Vec::<Value>::new());
}
