//! `tenure people`: who signs in at a hub beside its owner's key, how far each goes, and where each is signed in.

use anyhow::Context as _;
use serde_json::{Value, json};
use tenure_hub_server::encoded_in_address;
use tenure_wire::hub::Response;

use crate::home::Home;
use crate::hub::session::HubSession;
use crate::reach::client::Client;
use crate::reach::network::UNREADABLE;
use crate::reach::whom::Where;
use crate::terminal::output::Output;

/// Invite people to a hub's pages, each with a role, and dismiss them.
///
/// A person sees what your key sees there, signs in with a key of the own, and is named in the audit log. A role signs
/// nothing: leases and rollouts are signed by your key alone.
///
/// Example: tenure people invite Ada --role operator --hub hub.example:7369
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the people, with their roles, and who is invited.
    List(ListArguments),
    Invite(InviteArguments),
    /// Give a person another role; what the person is signed in with ends.
    Role(RoleArguments),
    /// Dismiss a person, or take an invitation back; what the person is signed in with ends.
    Dismiss(OneArguments),
    /// List where you and others are signed in: browsers, commands and tokens.
    Sessions(ListArguments),
    /// End a session or a token.
    End(EndArguments),
}

#[derive(clap::Args)]
struct At {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// Ask as a person whom an owner invited, and not with the owner's key.
    #[arg(long)]
    person: bool,
}

#[derive(clap::Args)]
struct ListArguments {
    #[command(flatten)]
    at: At,
}

/// Invite somebody, and print the command that opens the invitation: once, within a day.
///
/// Hand it over by a way that nobody else reads: whoever opens it first is that person. Inviting the same name once more
/// takes the former invitation back.
///
/// Example: tenure people invite Ada --role operator
#[derive(clap::Args)]
struct InviteArguments {
    /// The name, as others see it.
    name: String,
    /// How far the person goes.
    #[arg(long, value_enum)]
    role: Role,
    #[command(flatten)]
    at: At,
}

#[derive(clap::Args)]
struct RoleArguments {
    /// The person.
    name: String,
    /// How far the person goes from now on.
    #[arg(value_enum)]
    role: Role,
    #[command(flatten)]
    at: At,
}

#[derive(clap::Args)]
struct OneArguments {
    /// The person.
    name: String,
    #[command(flatten)]
    at: At,
}

#[derive(clap::Args)]
struct EndArguments {
    /// Its number, as `tenure people sessions` lists it.
    id: u32,
    #[command(flatten)]
    at: At,
}

/// How far a person goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Sees pages, lists and files.
    Viewer,
    /// Acknowledges alarms, watches logs, pauses and resumes rollouts, and hands in receipts, too.
    Operator,
    /// Does all that your key may do at the hub: invites and dismisses people, too.
    Owner,
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }
}

/// A hub that is asked.
struct Asked {
    client: Client,
    session: HubSession,
}

/// Runs `tenure people`.
///
/// # Errors
/// The hub can't be reached, or refuses.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.command {
        Command::List(ListArguments { at }) => list(at, output),
        Command::Invite(arguments) => invite(arguments, output),
        Command::Role(RoleArguments { name, role, at }) => {
            let body = json!({ "role": role.word() });
            at.open()?.post(&format!("/v1/people/{}/role", encoded_in_address(name)), &body)?;
            let word = role.word();
            let text = format!("{name} is {word} now, and signs in anew");
            output.line(&text, &json!({ "name": name, "role": word }));
            Ok(())
        }
        Command::Dismiss(OneArguments { name, at }) => {
            let path = format!("/v1/people/{}/dismiss", encoded_in_address(name));
            at.open()?.post(&path, &Value::Null)?;
            output.line(&format!("{name} is dismissed"), &json!({ "dismissed": name }));
            Ok(())
        }
        Command::Sessions(ListArguments { at }) => sessions(at, output),
        Command::End(EndArguments { id, at }) => {
            at.open()?.post(&format!("/v1/passes/{id}/revoke"), &Value::Null)?;
            output.line(&format!("{id} is over"), &json!({ "ended": id }));
            Ok(())
        }
    }
}

impl At {
    fn open(&self) -> anyhow::Result<Asked> {
        let home = Home::from_environment()?;
        let mut client = Client::new(&home)?;
        let place = Where { device: None, hub: self.hub.clone(), via: None };
        let key = if self.person { home.person_key()? } else { home.owner_key()? };
        let session = HubSession::open(&mut client, &place, key)?;
        Ok(Asked { client, session })
    }
}

impl Asked {
    fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Response> {
        let body = body.to_string().into_bytes();
        self.session.ask(&mut self.client, "POST", path, &[], &body)
    }

    fn rows(&mut self, name: &str) -> anyhow::Result<Vec<Value>> {
        self.session.rows(&mut self.client, name)
    }
}

fn list(at: &At, output: &Output) -> anyhow::Result<()> {
    let people = at.open()?.rows("people")?;
    if people.is_empty() && !output.is_json() {
        output.line(
            "none yet; invite somebody with: tenure people invite NAME --role viewer",
            &Value::Null,
        );
    }
    for person in people {
        let word = |name: &str| person[name].as_str().unwrap_or_default();
        let by = match word("invited_by") {
            "" => "by the owner's key".to_string(),
            name => format!("by {name}"),
        };
        let text = format!("{}: {}, {}, invited {by}", word("name"), word("role"), word("state"));
        output.line(&text, &person);
    }
    Ok(())
}

fn invite(arguments: &InviteArguments, output: &Output) -> anyhow::Result<()> {
    let InviteArguments { name, role, at } = arguments;
    let mut asked = at.open()?;
    let answer = asked.post("/v1/people", &json!({ "name": name, "role": role.word() }))?;
    let invitation: Value = serde_json::from_slice(&answer.body).context(UNREADABLE)?;
    let code = invitation["code"].as_str().context(UNREADABLE)?;
    let hub = asked.session.address();
    let command = format!("tenure login --hub {hub} --invitation {code}");
    let text = format!(
        "{name} opens the invitation with this command, once, within a day; hand it over by a way that nobody else reads:\n  \
         {command}"
    );
    let object = json!({
        "name": invitation["name"],
        "role": invitation["role"],
        "code": code,
        "ends": invitation["ends_unix_s"],
        "hub": hub,
        "command": command,
    });
    output.line(&text, &object);
    Ok(())
}

fn sessions(at: &At, output: &Output) -> anyhow::Result<()> {
    for pass in at.open()?.rows("passes")? {
        let word = |name: &str| pass[name].as_str().unwrap_or_default();
        let words = [word("kind"), word("name"), word("person"), word("agent"), word("network")];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        output.line(&format!("{} {}", pass["id"], words.join(", ")), &pass);
    }
    Ok(())
}
