//! `tenure secret`: a tenant's secrets on a device that others may own.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::SigningKey;
use tenure_package::{SecretChange, SecretQuery};
use tenure_wire::Name;
use tenure_wire::control::{Client as _, SecretList};
use tenure_wire::limits::SECRET_BYTES_MAX;
use zeroize::Zeroizing;

use crate::home::Home;
use crate::reach::client::{Client, LeasedDevice};
use crate::reach::whom::TenantWhere;
use crate::terminal::output::Output;

/// Keep secrets on a device for your machines there: passwords, keys, tokens.
///
/// A secret is sealed to the device before it leaves this computer and signed with your tenant key:
/// neither the hub nor a relay can read or change it. Those of your machines may read it whose
/// package asks for it, and whose lease grants it.
///
/// Example: tenure secret set wifi --device attic < password.txt
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Set a secret that isn't there yet.
    Set(Value),
    /// Give a secret that is there a new value; machines read it from then on.
    Rotate(Value),
    /// Show which secrets are there; their values never leave the device.
    List(TenantWhere),
    /// Remove a secret.
    Remove(Named),
}

#[derive(clap::Args)]
struct Value {
    #[command(flatten)]
    named: Named,
    /// The file that holds the value, every byte of it. Without it the value comes from standard
    /// input, where one newline at its end is left out.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take a value of no bytes, which is otherwise refused: the command before a pipe that failed leaves nothing there.
    #[arg(long)]
    empty: bool,
}

#[derive(clap::Args)]
struct Named {
    /// The secret.
    name: Name,
    #[command(flatten)]
    place: TenantWhere,
}

/// Runs `tenure secret`.
///
/// # Errors
/// The device can't be reached or isn't the owner's, or refuses.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Set(value) => set(value, false, output),
        Action::Rotate(value) => set(value, true, output),
        Action::List(place) => list(place, output),
        Action::Remove(named) => remove(named, output),
    }
}

/// A tenant's session with a device.
struct Session {
    client: Client,
    device: LeasedDevice,
    key: SigningKey,
}

impl Session {
    fn open(place: &TenantWhere) -> anyhow::Result<Self> {
        let home = Home::from_environment()?;
        let mut client = Client::new(&home)?;
        let device = place.connect(&mut client)?;
        Ok(Self { client, device, key: home.tenant_key()? })
    }

    fn list(&mut self) -> anyhow::Result<SecretList> {
        let query = SecretQuery { device: self.device.key, caller: self.client.own_key() };
        let query = query.sign(&self.key)?;
        self.client.at(&self.device.route).secret_list(&query)
    }

    fn change(&mut self, change: &SecretChange) -> anyhow::Result<()> {
        let change = change.sign(&self.key)?;
        self.client.at(&self.device.route).secret_change(&change)
    }
}

fn set(value: &Value, rotate: bool, output: &Output) -> anyhow::Result<()> {
    let bytes = read(value)?;
    let mut session = Session::open(&value.named.place)?;
    let name = &value.named.name;
    let known = session.list()?;
    let is_there = known.secrets.iter().any(|secret| secret.name == *name);
    match (is_there, rotate) {
        (true, false) => bail!("the secret {name} is there already; see `tenure secret rotate`"),
        (false, true) => bail!("there is no secret {name} yet; see `tenure secret set`"),
        _ => {}
    }
    let (tenant, version) = (session.key.verifying_key(), known.last.saturating_add(1));
    let device = (session.device.key, &session.device.route.key);
    let change =
        SecretChange::set(&mut LinuxEntropy, &tenant, device, (name.clone(), version), &bytes)?;
    session.change(&change)?;
    let (done, what) = if rotate { ("changed", "rotated") } else { ("set", "set") };
    let device = &session.device.name;
    output.line(
        &format!("{done} the secret {name} on {device}"),
        &serde_json::json!({ what: name.as_str(), "device": device.as_str(), "version": version }),
    );
    Ok(())
}

fn list(place: &TenantWhere, output: &Output) -> anyhow::Result<()> {
    let mut session = Session::open(place)?;
    let secrets = session.list()?.secrets;
    let text: Vec<String> = secrets
        .iter()
        .map(|secret| format!("{}  version {}", secret.name, secret.version))
        .collect();
    let text = if text.is_empty() { "no secrets".to_owned() } else { text.join("\n") };
    let objects: Vec<_> = secrets
        .iter()
        .map(
            |secret| serde_json::json!({ "name": secret.name.as_str(), "version": secret.version }),
        )
        .collect();
    output.line(&text, &serde_json::json!({ "secrets": objects }));
    Ok(())
}

fn remove(named: &Named, output: &Output) -> anyhow::Result<()> {
    let mut session = Session::open(&named.place)?;
    let name = &named.name;
    let known = session.list()?;
    if !known.secrets.iter().any(|secret| secret.name == *name) {
        bail!("there is no secret {name}; see `tenure secret list`");
    }
    let version = known.last.saturating_add(1);
    let change = SecretChange::remove(session.device.key, name.clone(), version);
    session.change(&change)?;
    let device = &session.device.name;
    output.line(
        &format!("removed the secret {name} from {device}"),
        &serde_json::json!({ "removed": name.as_str(), "device": device.as_str() }),
    );
    Ok(())
}

/// The value, from where it can't be seen: neither the command line nor a terminal.
fn read(value: &Value) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 2));
    let limit = SECRET_BYTES_MAX as u64 + 2;
    match &value.file {
        Some(path) => {
            let file = std::fs::File::open(path);
            let file = file.with_context(|| format!("can't read {}", path.display()))?;
            file.take(limit)
                .read_to_end(&mut bytes)
                .with_context(|| format!("can't read {}", path.display()))?;
        }
        None if std::io::stdin().is_terminal() => {
            bail!("the value comes from standard input or --file, so that nobody sees it here")
        }
        None => {
            std::io::stdin().take(limit).read_to_end(&mut bytes).context("standard input")?;
            // One line's end, which `echo` and editors add; that of Windows has two bytes.
            for end in [b'\n', b'\r'] {
                if bytes.last() == Some(&end) {
                    bytes.pop();
                } else {
                    break;
                }
            }
        }
    }
    if bytes.len() > SECRET_BYTES_MAX {
        bail!("a secret has at most {SECRET_BYTES_MAX} bytes");
    }
    if bytes.is_empty() && !value.empty {
        let from = value.file.as_ref().map(|path| format!("in {}", path.display()));
        let from = from.unwrap_or_else(|| "by standard input".to_owned());
        bail!("nothing came {from}; --empty takes an empty value");
    }
    Ok(bytes)
}
