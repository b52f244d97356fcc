//! The hub's API in a session: the same requests as over HTTP, signed in with the user's key.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenure_crypto::SigningKey;
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Request, Response, function};

use crate::reach::client::{Client, Route};
use crate::reach::network::UNREADABLE;
use crate::reach::whom::Where;

/// How long the hub may take to answer.
const HUB_TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of a body, or of an answer's, that are sent in one call.
pub const PART_BYTES: usize = 6 * 1024;
/// The rows of a list that are asked for at once: as many of the longest fit an answer.
const ROWS_AT_ONCE: usize = 8;
/// The most rows that a list has; a hub that promises more without an end is not believed.
const ROWS_MAX: usize = 1_000_000;

/// A hub that this user is signed in to.
pub struct HubSession {
    route: Route,
    key: SigningKey,
    pass: String,
}

impl HubSession {
    /// Signs in to the hub with `key`.
    ///
    /// # Errors
    /// No hub is known or answers, or it doesn't know the key.
    pub fn open(client: &mut Client, place: &Where, key: SigningKey) -> anyhow::Result<Self> {
        let route = place.hub_route(client)?;
        let mut session = Self { route, key, pass: String::new() };
        session.sign_in(client)?;
        Ok(session)
    }

    /// The hub's address with its key, as `--hub` takes it.
    pub fn address(&self) -> String {
        format!("{}#{}", self.route.address, self.route.key)
    }

    fn sign_in(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let (hub, own) = (self.route.key, client.own_key());
        let request = tenure_hub_server::sign_in_request(&self.key, hub, own, Access::Session);
        let pass: Pass = ask(client, &self.route, function::SIGN_IN, &request)?;
        self.pass = pass.secret;
        Ok(())
    }

    /// Makes one request of the API, and returns its answer whatever its status.
    ///
    /// # Errors
    /// The hub can't be reached, or the answer doesn't fit.
    pub fn request(
        &mut self,
        client: &mut Client,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> anyhow::Result<Response> {
        for is_again in [false, true] {
            let request = Request {
                pass: self.pass.clone(),
                method: method.into(),
                path: path.into(),
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).into(), value.clone()))
                    .collect(),
                body: body.to_vec(),
            };
            match answered(client, &self.route, function::REQUEST, &request)? {
                Ok(response) => return Ok(response),
                // Passes are short; a command may be long.
                Err(HubRefusal::Pass) if !is_again => self.sign_in(client)?,
                Err(refusal) => return Err(refusal).with_context(|| at(&self.route)),
            }
        }
        bail!("{} signs this user in and doesn't know it then", at(&self.route))
    }

    /// As [`Self::request`], where an answer that isn't a success is an error.
    ///
    /// # Errors
    /// As the hub says.
    pub fn ask(
        &mut self,
        client: &mut Client,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> anyhow::Result<Response> {
        let response = self.request(client, method, path, headers, body)?;
        match response.status {
            200..=299 => Ok(response),
            _ => bail!("{}: {}", at(&self.route), reason(&response)),
        }
    }

    /// All rows of the list that the API calls `name`, as objects by column.
    ///
    /// # Errors
    /// As [`Self::ask`]; or the list has more than a million rows.
    pub fn rows(&mut self, client: &mut Client, name: &str) -> anyhow::Result<Vec<Value>> {
        let (rows, has_more) = self.first_rows(client, name, [ROWS_AT_ONCE, ROWS_MAX])?;
        if has_more {
            bail!("{} lists {name} without an end", at(&self.route))
        }
        Ok(rows)
    }

    /// The first `most` rows of a list, asked for `at_once` by `at_once`, and whether it has more. Filters may stand behind
    /// the list's name and a `?`.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn first_rows(
        &mut self,
        client: &mut Client,
        list: &str,
        [at_once, most]: [usize; 2],
    ) -> anyhow::Result<(Vec<Value>, bool)> {
        let mark = if list.contains('?') { '&' } else { '?' };
        let mut rows = Vec::new();
        while rows.len() < most {
            let limit = at_once.min(most - rows.len());
            let path = format!("/v1/{list}{mark}limit={limit}&skip={}", rows.len());
            let answer = self.ask(client, "GET", &path, &[], &[])?;
            let page: Value = serde_json::from_slice(&answer.body).context(UNREADABLE)?;
            let items = page["items"].as_array().context(UNREADABLE)?;
            rows.extend(items.iter().take(limit).cloned());
            // A hub that always promises more ends here, too.
            if page["next"].is_null() || items.is_empty() {
                return Ok((rows, false));
            }
        }
        Ok((rows, true))
    }
}

/// The header called `name` of an answer.
pub fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let mut headers = response.headers.iter();
    headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// The reason in an answer that isn't a success: in the form of RFC 9457, or of a registry.
pub fn reason(response: &Response) -> String {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let words = body["detail"].as_str().or(body["errors"][0]["message"].as_str());
    words.map_or_else(|| format!("the answer is {}", response.status), ToString::to_string)
}

/// Calls a function of the hub.
///
/// # Errors
/// The hub can't be reached, or refuses.
pub fn ask<P: Serialize, R: DeserializeOwned>(
    client: &mut Client,
    route: &Route,
    function: &str,
    parameter: &P,
) -> anyhow::Result<R> {
    answered(client, route, function, parameter)?.with_context(|| at(route))
}

fn answered<P: Serialize, R: DeserializeOwned>(
    client: &mut Client,
    route: &Route,
    function: &str,
    parameter: &P,
) -> anyhow::Result<Answer<R>> {
    let parameter = postcard::to_allocvec(parameter)?;
    let answer = client.call(route, function, Some(parameter), HUB_TIMEOUT);
    let answer = answer.with_context(|| at(route))?.unwrap_or_default();
    postcard::from_bytes(&answer).ok().context(UNREADABLE)
}

fn at(route: &Route) -> String {
    format!("the hub at {}", route.address)
}
