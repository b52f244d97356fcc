//! Each route against each role. The routes are those of the router itself, so that one without a decision here fails.

use std::collections::BTreeSet;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use http::{Request, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tenure_crypto::{Seed, SigningKey};
use tenure_pages::{Entry, NoPage};
use tenure_wire::hub::Access;
use tenure_wire::{PublicKey, Target};
use tower::ServiceExt as _;

use super::*;
use crate::api::sign_in::{self, Whence};
use crate::store::{Database, Location};
use crate::web::{Pages, Visitors};

/// Whom a route is open to.
type Who = &'static [&'static str];
const ALL: Who = &["nobody", "viewer", "operator", "owner", "key"];
/// Who has no pass is led to where one signs in, or refused.
const SIGNED_IN: Who = &["viewer", "operator", "owner", "key"];
const STEERS: Who = &["operator", "owner", "key"];
/// All that the key may do.
const KEY: Who = &["owner", "key"];
const NONE: Who = &[];

/// The lists: each is a page, two files, and a part of the API.
const LISTS: [&str; 20] = [
    "devices",
    "fleet-states",
    "fleet-versions",
    "machines",
    "alarms",
    "rule-alarms",
    "open-alarms",
    "faults",
    "fault-issues",
    "device-reports",
    "machine-metrics",
    "machine-use",
    "packages",
    "rollouts",
    "rollout-devices",
    "receipts",
    "tenants",
    "audit",
    "people",
    "passes",
];

/// The other routes. Those of all methods stand here with two of them.
const ROUTES: [(&str, &str, Who); 58] = [
    ("GET", "/", SIGNED_IN),
    ("GET", "/devices/{device}", SIGNED_IN),
    ("GET", "/rollouts/{id}", SIGNED_IN),
    ("POST", "/rollouts/{id}/{verb}", STEERS),
    ("POST", "/rule-alarms/{id}/acknowledge", STEERS),
    ("GET", "/bills", SIGNED_IN),
    ("GET", "/bills.csv", SIGNED_IN),
    // The own ones: those of others aren't found.
    ("POST", "/passes/{id}/revoke", SIGNED_IN),
    ("POST", "/people", KEY),
    ("POST", "/people/{name}/role", KEY),
    ("POST", "/people/{name}/dismiss", KEY),
    ("GET", "/sign-in", ALL),
    // With a code that is good, and none of these has one.
    ("POST", "/sign-in", NONE),
    ("POST", "/sign-out", SIGNED_IN),
    ("GET", "/style.css", ALL),
    ("GET", "/icon.svg", ALL),
    ("GET", "/live.js", ALL),
    ("GET", "/log.js", ALL),
    ("GET", "/health", ALL),
    ("GET", "/ready", ALL),
    ("GET", "/metrics", SIGNED_IN),
    // Devices and commands come here, and no browser does.
    ("GET", "/datagrams", NONE),
    ("GET", "/v1/openapi.json", ALL),
    ("GET", "/v1/bills", SIGNED_IN),
    ("GET", "/v1/devices/{device}/log", STEERS),
    ("POST", "/v1/receipts", STEERS),
    ("POST", "/v1/revocations", STEERS),
    ("POST", "/v1/rollouts", STEERS),
    ("GET", "/v1/rollouts/{id}", SIGNED_IN),
    ("GET", "/v1/rollouts/{id}/plan", SIGNED_IN),
    ("POST", "/v1/rollouts/{id}/pause", STEERS),
    ("POST", "/v1/rollouts/{id}/resume", STEERS),
    ("POST", "/v1/rollouts/{id}/abort", STEERS),
    ("POST", "/v1/rollouts/{id}/roll-back", STEERS),
    ("POST", "/v1/rollouts/{id}/next", STEERS),
    ("POST", "/v1/rollouts/{id}/devices/{device}", STEERS),
    ("POST", "/v1/rule-alarms/{id}/acknowledge", STEERS),
    ("POST", "/v1/people", KEY),
    ("POST", "/v1/people/{name}/role", KEY),
    ("POST", "/v1/people/{name}/dismiss", KEY),
    ("POST", "/v1/passes/{id}/revoke", SIGNED_IN),
    ("GET", "/v1/packages/{digest}", SIGNED_IN),
    ("GET", "/v1/packages/{digest}/{*rest}", NONE),
    ("POST", "/v1/packages/{digest}/{*rest}", NONE),
    ("GET", "/v2", SIGNED_IN),
    ("POST", "/v2", KEY),
    ("GET", "/v2/", SIGNED_IN),
    ("POST", "/v2/", KEY),
    ("GET", "/v2/{*name}", SIGNED_IN),
    ("POST", "/v2/{*name}", KEY),
    // There is nothing.
    ("GET", "/m", ALL),
    ("POST", "/m", ALL),
    ("GET", "/m/", ALL),
    ("POST", "/m/", ALL),
    // Of a person's role the machine's lease knows nothing: who isn't the owner visits like a guest, and none is let in here.
    ("GET", "/m/{*page}", KEY),
    ("POST", "/m/{*page}", NONE),
    ("HEAD", "/", SIGNED_IN),
    ("HEAD", "/v1/devices", SIGNED_IN),
];

const HUB: PublicKey = PublicKey([3; 32]);
const SESSION: PublicKey = PublicKey([4; 32]);

/// Nobody is there to be called.
#[derive(Clone)]
struct Nobody;

impl Visits for Nobody {
    async fn call(&self, _: Target, _: Vec<u8>, _: Instant) -> Result<Option<Vec<u8>>, NoPage> {
        Err(NoPage::Unknown)
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        Ok(Vec::new())
    }
}

/// A hub whose owner is key 1.
struct Scene {
    router: Router,
    database: Database,
    _folder: tempfile::TempDir,
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location: Location = folder.path().join("hub.sqlite").into();
        let mut database = Database::open(location.clone()).unwrap();
        database.admit(vec![key(1).verifying_key()], None);
        let running = database.running();
        let pages = Pages {
            database: location,
            tariff: None,
            is_by_tls: false,
            is_by_proxy: false,
            running,
        };
        let ticket_key = Seed::from_bytes(&[9; 32]);
        let visitors = Visitors { owners: Nobody, guests: Nobody, strangers: None, ticket_key };
        let router = router(HubState::new(pages), MachinePages::new(visitors));
        Self { router, database, _folder: folder }
    }

    /// The cookie of a browser whose code was asked for with that key.
    fn cookie(&mut self, number: u8, access: &Access) -> String {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let request = sign_in::request(&key(number), HUB, SESSION, access.clone());
        let running = self.database.running();
        let opened = self.database.transact(|connection| {
            let code = sign_in::sign_in(connection, HUB, SESSION, &request, &running, now)?;
            sign_in::open_page(connection, &code.unwrap(), &Whence::default(), now)
        });
        opened.unwrap().unwrap()
    }

    async fn ask(&self, (method, path): (&str, &str), cookie: &str, body: &Value) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", "hub").header("sec-fetch-site", "same-origin");
        if !cookie.is_empty() {
            request =
                request.header(header::COOKIE, format!("{}={cookie}", tenure_pages::HUB_SESSION));
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Body::from(body)).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Invites somebody, and opens the invitation with that key.
    async fn invite(&mut self, (name, role): (&str, &str), number: u8, cookie: &str) {
        let body = json!({ "name": name, "role": role });
        let answer = self.ask(("POST", "/v1/people"), cookie, &body).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        let told = answer.into_body().collect().await.unwrap().to_bytes();
        let told: Value = serde_json::from_slice(&told).unwrap();
        let code = told["code"].as_str().unwrap().to_string();
        self.cookie(number, &Access::Invitation { code });
    }
}

/// The routes of a router: each with its methods but `HEAD`, which goes with `GET`, as the router shows them (`Debug` of `axum`).
fn routes_of(router: &Router) -> BTreeSet<(String, String)> {
    let text = format!("{router:?}");
    let (own, _) = text.split_once(", fallback_router: ").expect("a router of axum 0.8");
    let (methods, paths) = own.split_once(", node: Node").expect("a router of axum 0.8");
    let parts = |text: &str| -> Vec<(String, String)> {
        let parts = text.split("RouteId(").skip(1).map(|part| part.split_once("): ").unwrap());
        parts.map(|(id, rest)| (id.to_string(), rest.to_string())).collect()
    };
    let methods = parts(methods);
    let mut routes = BTreeSet::new();
    for (id, path) in parts(paths) {
        let path = path.split('"').nth(1).unwrap().to_string();
        let (_, route) = methods.iter().find(|(known, _)| *known == id).unwrap();
        let (_, allowed) = route.rsplit_once("allow_header: ").expect(route);
        let allowed = match allowed.strip_prefix("Bytes(b\"") {
            Some(bytes) => bytes.split('"').next().unwrap(),
            None if allowed.starts_with("Skip") => "GET,POST",
            None => panic!("{path} has no methods: {allowed}"),
        };
        let allowed = allowed.split(',').filter(|method| *method != "HEAD");
        routes.extend(allowed.map(|method| (method.to_string(), path.clone())));
    }
    routes
}

/// The decisions: each method and path with whom it is open to.
fn decided() -> Vec<(String, String, Who)> {
    let of_list = |list: &str| {
        [format!("/{list}"), format!("/{list}.csv"), format!("/{list}.json"), format!("/v1/{list}")]
            .map(|path| ("GET".to_string(), path, SIGNED_IN))
    };
    let others = ROUTES.iter().map(|(method, path, who)| ((*method).into(), (*path).into(), *who));
    LISTS.iter().flat_map(|list| of_list(list)).chain(others).collect()
}

/// A path of that route, below which nothing is.
fn filled(route: &str) -> String {
    [
        ("{device}", "attic"),
        ("{id}", "987654"),
        ("{verb}", "pause"),
        ("{name}", "Nobody"),
        ("{digest}", "00"),
        ("{*rest}", "x"),
        ("{*name}", "x"),
        ("{*page}", "panel@attic/"),
    ]
    .into_iter()
    .fold(route.to_string(), |path, (variable, value)| path.replace(variable, value))
}

/// Whether an answer is to somebody who may ask: it is no refusal, and doesn't lead to where one signs in.
fn is_open(answer: &Response) -> bool {
    let is_refused = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let headers = answer.headers();
    let leads_away = headers.get(header::LOCATION).is_some_and(|to| to == "/sign-in");
    // Whoever signs out is led there, too.
    let signs_out = headers.contains_key(header::SET_COOKIE);
    !is_refused && (!leads_away || signs_out)
}

#[test]
fn each_route_is_open_to_whom_it_was_decided_and_a_new_one_needs_a_decision() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::new();
        let decided = decided();
        let get = |(method, path): (&String, &String)| match method.as_str() {
            "HEAD" => ("GET".to_string(), path.clone()),
            _ => (method.clone(), path.clone()),
        };
        let known: BTreeSet<(String, String)> =
            decided.iter().map(|(method, path, _)| get((method, path))).collect();
        assert_eq!(routes_of(&scene.router), known, "each route has a decision");

        let own = scene.cookie(1, &Access::Page);
        let people = [("viewer", 20), ("operator", 21), ("owner", 22)];
        for (role, number) in people {
            scene.invite((role, role), number, &own).await;
        }
        let askers = [("nobody", None), ("key", Some(1))].into_iter();
        let askers = askers.chain(people.map(|(role, number)| (role, Some(number))));
        let mut wrong = Vec::new();
        for (asker, number) in askers {
            let mut cookie = number.map_or_else(String::new, |it| scene.cookie(it, &Access::Page));
            for (method, route, who) in &decided {
                let path = filled(route);
                let asked = (method.as_str(), path.as_str());
                let answer = scene.ask(asked, &cookie, &Value::Null).await;
                if is_open(&answer) != who.contains(&asker) {
                    wrong.push(format!("{method} {route}, {asker}: {}", answer.status()));
                }
                if let ("/sign-out", Some(number)) = (route.as_str(), number) {
                    cookie = scene.cookie(number, &Access::Page);
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}
