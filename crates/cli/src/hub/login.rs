//! `tenure login`: opens a hub's pages, and makes tokens for programs.

use tenure_wire::Name;
use tenure_wire::hub::{Access, Pass, Receipts, Scope, Taken, function};

use crate::home::Home;
use crate::hub::session::ask;
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::clock::parse_days;
use crate::terminal::output::Output;

/// The most receipts of one call: 7 of the longest fit.
const RECEIPTS_PER_CALL: usize = 7;

/// Sign in to a hub's pages with your key, or make a token for a program.
///
/// Prints an address that opens the pages in a browser, once, within two minutes. The key stays here: the hub
/// gets a signature that is good in this session alone. Whom an owner invited opens the invitation here, and signs in with
/// --person from then on.
///
/// Example: tenure login --hub hub.example:7369
#[derive(clap::Args)]
pub struct Arguments {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// Sign in as a tenant, to see your machines' receipts and bills on others' devices.
    #[arg(long)]
    tenant: bool,
    /// Sign in as a person whom an owner invited, with a key that is for this alone.
    #[arg(long, conflicts_with = "tenant")]
    person: bool,
    /// Open an invitation, once: this computer's key for people is that person's from then on.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["tenant", "token"])]
    invitation: Option<String>,
    /// Make a token of that name for a program instead, and print it. It opens the API, as a bearer token.
    #[arg(long, value_name = "NAME")]
    token: Option<Name>,
    /// For how long the token is good, 366d at most; a number alone is days.
    #[arg(long, value_name = "SPAN", default_value = "30d", requires = "token", value_parser = parse_days)]
    days: u16,
    /// The doors that the token opens: `read` (lists, bills, metrics, packages), `receipts` (hands them in), `packages`
    /// (pushes them), `rollouts`, `passes` (ends sign-ins), `logs`, `alarms` (acknowledges them), `people` (invites and
    /// dismisses those who go no further than the token); several with commas between.
    #[arg(
        long,
        value_name = "SCOPES",
        default_value = "read,receipts",
        value_delimiter = ',',
        requires = "token"
    )]
    scope: Vec<Scope>,
}

/// Runs `tenure login`.
///
/// # Errors
/// The hub can't be reached, or refuses.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let place = Where { device: None, hub: arguments.hub.clone(), via: None };
    let route = place.hub_route(&mut client)?;
    let is_person = arguments.person || arguments.invitation.is_some();
    let key = match (arguments.tenant, is_person) {
        (true, _) => home.tenant_key()?,
        (_, true) => home.person_key()?,
        _ => home.owner_key()?,
    };
    let access = match (&arguments.invitation, &arguments.token) {
        (Some(code), _) => Access::Invitation { code: code.trim().to_string() },
        (None, Some(name)) => {
            let (days, scopes) = (arguments.days, arguments.scope.clone());
            Access::Token { name: name.clone(), days, scopes }
        }
        (None, None) => Access::Page,
    };
    let request = tenure_hub_server::sign_in_request(&key, route.key, client.own_key(), access);
    let Pass { secret, url } = ask(&mut client, &route, function::SIGN_IN, &request)?;
    if arguments.token.is_some() {
        let text = format!("{secret}\n  good for {} days at {url}/v1/", arguments.days);
        let object = serde_json::json!({ "token": secret, "url": url, "days": arguments.days });
        output.line(&text, &object);
    } else {
        let address = format!("{url}/sign-in?code={secret}");
        let mut text =
            format!("open this address within two minutes; it is good once:\n  {address}");
        if arguments.invitation.is_some() {
            text += "\nthe invitation is opened; sign in from now on with: tenure login --person";
        }
        output.line(&text, &serde_json::json!({ "address": address, "code": secret, "url": url }));
    }
    Ok(())
}

/// Hands receipts in at the hub, which keeps them.
///
/// # Errors
/// The hub can't be reached, or refuses one.
pub(crate) fn hand_in(
    client: &mut Client,
    place: &Where,
    receipts: &[Vec<u8>],
) -> anyhow::Result<Taken> {
    let route = place.hub_route(client)?;
    let mut sum = Taken::default();
    for some in receipts.chunks(RECEIPTS_PER_CALL) {
        let some = Receipts { receipts: some.to_vec() };
        let taken: Taken = ask(client, &route, function::TAKE_RECEIPTS, &some)?;
        sum.new += taken.new;
        sum.known += taken.known;
    }
    Ok(sum)
}
