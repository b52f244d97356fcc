//! People of an owner at the hub: invited, let in by their own keys, as far as their roles go, and dismissed. Some people mean
//! harm, and so does who finds an invitation.

use super::world;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use tenure_crypto::SigningKey;
use tenure_wire::control::LogLine;
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Request, Response, Scope, function};
use tenure_wire::live_log::{LogShare, LogWish};
use tenure_wire::{Digest, PublicKey};

use tenure_hub_server::{Gates, Plan, SignedPlan, sign_in_request};
use world::place::Place;
use world::watching::{rule, watching};
use world::{Caller, HUB, SESSION, World, device, now, owner, token_access};

const DAY_S: u64 = 24 * 60 * 60;
const OWN: &str = "sec-fetch-site: same-origin";

/// The key of a person's own.
fn own_key(number: u8) -> SigningKey {
    owner(100 + number)
}

/// Asks the API for a change by the pass in `header`; a browser's pass says where it comes from.
fn post(world: &World, header: &str, path: &str, body: &Value) -> world::Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.request("POST", path, &[header, OWN], &body)
}

/// The code of an invitation that the holder of the pass makes.
fn invite(world: &World, pass: &str, name: &str, role: &str) -> String {
    let reply = post(world, pass, "/v1/people", &json!({ "name": name, "role": role }));
    assert_eq!(reply.status, 201, "{}", reply.body);
    let told: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((&told["name"], &told["role"]), (&name.into(), &role.into()));
    told["code"].as_str().unwrap().to_string()
}

fn opened(world: &mut World, code: &str, number: u8) -> Answer<Pass> {
    world.pass(&own_key(number), Access::Invitation { code: code.into() })
}

/// A hub whose owner 1 is signed in, with that one's cookie.
fn world() -> (World, String) {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    (world, cookie)
}

/// Somebody with that role, who is signed in with a browser: the cookie.
fn person(world: &mut World, key_pass: &str, role: &str, number: u8) -> String {
    let code = invite(world, key_pass, role, role);
    opened(world, &code, number).unwrap();
    world.cookie(&own_key(number))
}

fn people(world: &World, pass: &str) -> Vec<String> {
    let list = world.get("/v1/people", &[pass]).json();
    let line = |item: &Value| {
        let word = |name: &str| item[name].as_str().unwrap_or_default().to_string();
        format!("{} {} {} {}", word("name"), word("role"), word("state"), word("invited_by"))
    };
    list["items"].as_array().unwrap().iter().map(line).collect()
}

fn count(world: &World, pass: &str, list: &str) -> usize {
    world.get(list, &[pass]).json()["items"].as_array().unwrap().len()
}

#[test]
fn person_opens_an_invitation_once_and_sees_what_the_key_sees() {
    let (mut world, key) = world();
    assert_eq!(people(&world, &key), [""; 0], "a hub without people");
    let code = invite(&world, &key, "Ada", "viewer");
    assert_eq!(people(&world, &key), ["Ada viewer invited "]);
    let pass = opened(&mut world, &code, 1).unwrap();
    let reply = world.get(&format!("/sign-in?code={}", pass.secret), &[]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    assert_eq!(people(&world, &key), ["Ada viewer here "]);
    for number in [1, 2] {
        assert_eq!(opened(&mut world, &code, number), Err(HubRefusal::Invitation), "once");
    }
    // From then on by the own key alone, which sees the owner's rows.
    let cookie = world.cookie(&own_key(1));
    assert_eq!(count(&world, &cookie, "/v1/devices"), 2);
    assert!(world.get("/devices", &[&cookie]).body.contains("attic"));
    assert_eq!(world.pass(&own_key(2), Access::Page), Err(HubRefusal::UnknownKey));
    let other = world.cookie(&owner(2));
    assert_eq!(
        count(&world, &other, "/v1/people"),
        0,
        "another owner's people are nobody's business"
    );
}

#[test]
fn invitation_that_is_over_taken_back_or_guessed_opens_nothing() {
    let (mut world, key) = world();
    let code = invite(&world, &key, "Ada", "owner");
    let open = |world: &mut World, code: &str, unix_s: u64| -> Answer<Pass> {
        let access = Access::Invitation { code: code.into() };
        let request = sign_in_request(&own_key(1), HUB, SESSION, access);
        world.call_at(function::SIGN_IN, &request, unix_s, true)
    };
    assert_eq!(open(&mut world, &code, now() + DAY_S + 60), Err(HubRefusal::Invitation), "over");
    let again = invite(&world, &key, "Ada", "viewer");
    assert_eq!(open(&mut world, &code, now()), Err(HubRefusal::Invitation), "another one was made");
    for guess in
        ["", "0", &*"0".repeat(40), &again[..39], &*again.to_uppercase(), "%", "' OR 1=1 --"]
    {
        assert_eq!(open(&mut world, guess, now()), Err(HubRefusal::Invitation), "{guess}");
        // An invitation is no code for the pages, and none for a token.
        let page = world.get(&format!("/sign-in?code={again}"), &[]);
        assert_eq!(page.status, 403);
    }
    let token = format!("authorization: Bearer {again}");
    assert_eq!(world.get("/v1/devices", &[&token]).status, 401);
    assert_eq!(post(&world, &key, "/v1/people/Ada/dismiss", &Value::Null).status, 204);
    assert_eq!(open(&mut world, &again, now()), Err(HubRefusal::Invitation), "taken back");
    assert_eq!(people(&world, &key), [""; 0]);
}

#[test]
fn guesses_of_invitations_write_nothing_and_are_all_refused() {
    let (mut world, key) = world();
    invite(&world, &key, "Ada", "owner");
    let before = world.place.rows("SELECT count(*), max(number) FROM audit");
    for guess in 0..300 {
        let code = format!("{guess:040x}");
        assert_eq!(opened(&mut world, &code, 1), Err(HubRefusal::Invitation));
    }
    assert_eq!(world.place.rows("SELECT count(*), max(number) FROM audit"), before);
    assert_eq!(people(&world, &key), ["Ada owner invited "]);
}

#[test]
fn code_of_an_invitation_and_a_key_s_secret_are_nowhere_in_the_database() {
    let (world, key) = world();
    let code = invite(&world, &key, "Ada", "owner");
    let rows = world.place.rows(
        "SELECT count(*) FROM people WHERE name = 'Ada' AND length(code_hash) = 32 AND person_key IS NULL",
    );
    assert_eq!(rows, ["1"]);
    for column in ["name", "role", "invited_by"] {
        let rows = world.place.rows(&format!("SELECT {column} FROM people"));
        assert!(rows.iter().all(|text| !text.contains(&code)), "{rows:?}");
    }
    let logged = world.get("/v1/audit?limit=1000", &[&key]).body;
    assert!(!logged.contains(&code) && !world.get("/v1/people", &[&key]).body.contains(&code));
}

#[test]
fn invitation_binds_a_key_that_is_nobody_s_yet_and_whose_holder_signs() {
    let (mut world, key) = world();
    let code = invite(&world, &key, "Ada", "viewer");
    let access = || Access::Invitation { code: code.clone() };
    for known in [owner(1), owner(2)] {
        assert_eq!(world.pass(&known, access()), Err(HubRefusal::KnownKey), "an owner's");
    }
    let mut request = sign_in_request(&own_key(1), HUB, SESSION, access());
    request.key = own_key(2).verifying_key();
    let answer: Answer<Pass> = world.call(function::SIGN_IN, &request);
    assert_eq!(answer, Err(HubRefusal::Signature), "another one's key");
    let elsewhere = sign_in_request(&own_key(1), PublicKey([8; 32]), SESSION, access());
    let answer: Answer<Pass> = world.call(function::SIGN_IN, &elsewhere);
    assert_eq!(answer, Err(HubRefusal::Signature), "signed for another hub");
    opened(&mut world, &code, 1).unwrap();
    let second = invite(&world, &key, "Bob", "viewer");
    assert_eq!(opened(&mut world, &second, 1), Err(HubRefusal::KnownKey), "another person's");
    opened(&mut world, &second, 2).unwrap();
}

#[test]
fn names_are_lines_that_a_reader_sees_and_each_is_one_person_s() {
    let (mut world, key) = world();
    let told = |world: &World, body: Value| post(world, &key, "/v1/people", &body).status;
    for (body, status) in [
        (json!({ "name": "", "role": "viewer" }), 422),
        (json!({ "name": "a".repeat(65), "role": "viewer" }), 422),
        (json!({ "name": "Ad\u{200B}a", "role": "viewer" }), 422),
        (json!({ "name": "Ada\nowner", "role": "viewer" }), 422),
        (json!({ "name": "Ada", "role": "king" }), 400),
        (json!({ "name": "Ada" }), 400),
        (json!({ "name": "Ada", "role": "viewer", "key": "x" }), 400),
    ] {
        assert_eq!(told(&world, body.clone()), status, "{body}");
    }
    let name = "<b>Ada</b> / \"Grüße\" & co?";
    let code = invite(&world, &key, name, "viewer");
    opened(&mut world, &code, 1).unwrap();
    assert_eq!(told(&world, json!({ "name": name, "role": "owner" })), 409, "is here already");
    let page = world.get("/people", &[&key]).body;
    assert!(page.contains("&lt;b&gt;Ada") && !page.contains("<b>Ada"), "{page}");
    // The page's own form finds the person by the path that it makes of the name.
    let path = page.split("action=\"/people/").nth(1).unwrap().split("/role\"").next().unwrap();
    let reply =
        world.request("POST", &format!("/people/{path}/role"), &[&key, OWN], "role=operator");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/people")), "{}", reply.body);
    let dismissed = world.request("POST", &format!("/people/{path}/dismiss"), &[&key, OWN], "");
    assert_eq!(dismissed.status, 303);
    assert_eq!(people(&world, &key), [""; 0]);
}

#[test]
fn people_of_a_key_are_bounded_and_others_still_invite() {
    let (mut world, key) = world();
    world.write_by_hand(&format!(
        "INSERT INTO people (owner, name, role, invited_by, invited_unix_s) \
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) \
         SELECT '{}', 'p' || n, 'viewer', '', 0 FROM n",
        owner(1).verifying_key()
    ));
    let reply = post(&world, &key, "/v1/people", &json!({ "name": "Ada", "role": "viewer" }));
    assert_eq!(reply.status, 409, "{}", reply.body);
    let other = world.cookie(&owner(2));
    invite(&world, &other, "Ada", "viewer");
    assert_eq!(post(&world, &key, "/v1/people/p7/dismiss", &Value::Null).status, 204);
    invite(&world, &key, "Ada", "viewer");
}

#[test]
fn sessions_of_a_person_are_bounded_and_the_key_s_own_are_its() {
    let (mut world, key) = world();
    person(&mut world, &key, "viewer", 1);
    let made = (0..40).map(|_| world.pass(&own_key(1), Access::Page)).filter(Result::is_ok).count();
    // One is the browser's, and one the code that came with the invitation.
    assert_eq!(made, 14);
    assert_eq!(world.pass(&own_key(1), Access::Page), Err(HubRefusal::TooMany));
    assert!(world.pass(&owner(1), Access::Page).is_ok());
}

#[test]
fn token_of_a_person_goes_no_further_than_the_role() {
    let (mut world, key) = world();
    person(&mut world, &key, "viewer", 1);
    person(&mut world, &key, "operator", 2);
    for (number, scope, is_given) in [
        (1, Scope::Read, true),
        (1, Scope::Receipts, false),
        (1, Scope::Logs, false),
        (1, Scope::Alarms, false),
        (1, Scope::People, false),
        (2, Scope::Alarms, true),
        (2, Scope::Rollouts, true),
        (2, Scope::Packages, false),
        (2, Scope::People, false),
    ] {
        let pass = world.pass(&own_key(number), token_access(vec![scope]));
        let told = if is_given { Ok(()) } else { Err(HubRefusal::Role) };
        assert_eq!(pass.map(drop), told, "{number} {scope:?}");
    }
}

/// The last entry of that action: who, by whom, about what.
fn noted(world: &World, pass: &str, action: &str) -> (String, String, String) {
    let entries = world.get("/v1/audit?limit=1000", &[pass]).json();
    let entry = entries["items"].as_array().unwrap().iter().find(|entry| entry["action"] == action);
    let entry = entry.unwrap_or_else(|| panic!("{action} isn't noted: {entries}"));
    let word = |name: &str| entry[name].as_str().unwrap().to_string();
    (word("who"), word("by"), word("subject"))
}

#[test]
fn operator_acknowledges_alarms_by_the_own_name_and_each_act_is_noted_with_the_person() {
    let (mut world, key) = world();
    watching(&world, vec![rule("away", "silent > 20m")]).turn(now() + 2_000).unwrap();
    let (viewer, operator) =
        (person(&mut world, &key, "viewer", 1), person(&mut world, &key, "operator", 2));
    let id = world.get("/v1/rule-alarms?device=attic", &[&key]).json()["items"][0]["id"].clone();
    let path = format!("/v1/rule-alarms/{id}/acknowledge");
    let said = json!({ "by": "the owner", "word": "on it" });
    assert_eq!(post(&world, &viewer, &path, &said).status, 403);
    let page = world.get("/alarms", &[&viewer]).body;
    assert!(page.contains("attic") && !page.contains("/acknowledge\""), "{page}");
    let page = world.get("/alarms", &[&operator]).body;
    assert!(page.contains("name=\"word\"") && !page.contains("name=\"by\""), "{page}");
    assert_eq!(post(&world, &operator, &path, &said).status, 204);
    let alarm = world.get("/v1/rule-alarms?device=attic", &[&key]).json()["items"][0].clone();
    assert_eq!(alarm["by"], "operator", "whatever the form said");
    let owner_key = owner(1).verifying_key().to_string();
    let entry = |by: &str, subject: &str| (owner_key.clone(), by.to_string(), subject.to_string());
    assert_eq!(noted(&world, &key, "alarm acknowledged"), entry("operator", "attic"));
    assert_eq!(noted(&world, &key, "signed in").1, "operator");
    assert_eq!(noted(&world, &key, "opened an invitation").1, "operator");
    assert_eq!(noted(&world, &key, "invited"), entry("", "operator"));
    assert!(world.place.read(|| world.database.verify_audit()).is_ok());
    let page = world.get("/audit", &[&key]).body;
    assert!(page.contains("alarm acknowledged"), "{page}");
}

#[test]
fn person_of_who_an_entry_tells_is_under_its_hash() {
    let (mut world, key) = world();
    person(&mut world, &key, "operator", 1);
    assert!(world.place.read(|| world.database.verify_audit()).is_ok());
    world.write_by_hand("UPDATE audit SET \"by\" = 'Eve' WHERE action = 'opened an invitation'");
    assert!(world.place.read(|| world.database.verify_audit()).is_err());
}

#[test]
fn owner_by_role_invites_and_dismisses_and_nobody_below_does() {
    let (mut world, key) = world();
    let second = person(&mut world, &key, "owner", 1);
    let operator = person(&mut world, &key, "operator", 2);
    for path in ["/v1/people", "/v1/people/owner/role", "/v1/people/owner/dismiss"] {
        let body = json!({ "name": "Eve", "role": "owner" });
        assert_eq!(post(&world, &operator, path, &body).status, 403, "{path}");
    }
    assert!(!world.get("/people", &[&operator]).body.contains("invite-name"));
    let code = invite(&world, &second, "Ada", "viewer");
    opened(&mut world, &code, 3).unwrap();
    assert_eq!(noted(&world, &key, "invited").1, "owner");
    let list = ["Ada viewer here owner", "operator operator here ", "owner owner here "];
    assert_eq!(people(&world, &second), list);
    // Of another owner's people nobody here knows.
    let other = world.cookie(&owner(2));
    for path in ["/v1/people/Ada/dismiss", "/v1/people/Ada/role"] {
        assert_eq!(post(&world, &other, path, &json!({ "role": "owner" })).status, 404);
    }
    assert_eq!(post(&world, &second, "/v1/people/Ada/dismiss", &Value::Null).status, 204);
    assert_eq!(noted(&world, &key, "dismissed").1, "owner");
    assert_eq!(world.pass(&own_key(3), Access::Page), Err(HubRefusal::UnknownKey));
}

#[test]
fn role_signs_nothing() {
    let (mut world, key) = world();
    let second = person(&mut world, &key, "owner", 1);
    let plan = Plan {
        machine: "thermostat".parse().unwrap(),
        package: Digest([5; 32]),
        tenant: owner(50).verifying_key(),
        from: "0.0.0".parse().unwrap(),
        devices: vec!["attic".parse().unwrap()],
        labels: Vec::new(),
        stages: vec!["1".into()],
        soak_s: 30,
        faults_max: 0,
        gates: Gates::default(),
        failures_max: 0,
        pause_on_failure: false,
        ends_unix_s: now() as i64 + 3_600,
    };
    let told = |world: &World, key: &SigningKey| {
        let signed = json!(SignedPlan::sign(&plan, key));
        let reply = post(world, &second, "/v1/rollouts", &signed);
        assert_eq!(reply.status, 422, "{}", reply.body);
        reply.body
    };
    assert!(told(&world, &own_key(1)).contains("isn't signed by its owner"));
    // One that the owner's key signed gets further: its package isn't there.
    assert!(told(&world, &owner(1)).contains("push the package first"));
}

#[test]
fn change_of_a_role_ends_sessions_and_counts_with_the_next_sign_in() {
    let (mut world, key) = world();
    let cookie = person(&mut world, &key, "operator", 1);
    let token = world.token_for(&own_key(1), vec![Scope::Logs]);
    let waiting = world.pass(&own_key(1), Access::Page).unwrap().secret;
    let role = |world: &World, role: &str| {
        post(world, &key, "/v1/people/operator/role", &json!({ "role": role })).status
    };
    assert_eq!(role(&world, "operator"), 204);
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 200, "it was that already");
    assert_eq!(role(&world, "viewer"), 204);
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 401);
    assert_eq!(world.get("/v1/devices/attic/log", &[&token]).status, 401);
    let late = world.get(&format!("/sign-in?code={waiting}"), &[]);
    assert_eq!(late.status, 403, "a code of the former role opens nothing");
    let cookie = world.cookie(&own_key(1));
    assert_eq!(post(&world, &cookie, "/v1/rollouts/1/pause", &Value::Null).status, 403);
    assert_eq!(role(&world, "king"), 400);
}

#[test]
fn code_of_the_pages_opens_no_more_than_the_role() {
    let (mut world, key) = world();
    let cookie = person(&mut world, &key, "viewer", 1);
    let scopes = world.get("/v1/passes?kind=page", &[&cookie]).json()["items"][0]["scopes"].clone();
    assert_eq!(scopes, "read passes");
    assert_eq!(post(&world, &cookie, "/v1/people", &json!({})).status, 403);
}

/// A session's request by a pass of that key's: the status.
fn in_session(world: &mut World, pass: &Pass, path: &str) -> Answer<u16> {
    let request = Request {
        pass: pass.secret.clone(),
        method: "GET".into(),
        path: path.into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let answer: Answer<Response> = world.call(function::REQUEST, &request);
    answer.map(|response| response.status)
}

#[test]
fn dismissal_ends_all_that_a_person_is_signed_in_with_and_the_same_name_may_come_anew() {
    let (mut world, key) = world();
    let cookie = person(&mut world, &key, "operator", 1);
    let token = world.token_for(&own_key(1), vec![Scope::Read]);
    let session = world.pass(&own_key(1), Access::Session).unwrap();
    let code = world.pass(&own_key(1), Access::Page).unwrap().secret;
    assert_eq!(in_session(&mut world, &session, "/v1/devices"), Ok(200));
    assert_eq!(post(&world, &key, "/v1/people/operator/dismiss", &Value::Null).status, 204);
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 401);
    assert_eq!(world.get("/devices", &[&cookie]).header("location"), Some("/sign-in"));
    assert_eq!(world.get("/v1/devices", &[&token]).status, 401);
    assert_eq!(in_session(&mut world, &session, "/v1/devices"), Err(HubRefusal::Pass));
    assert_eq!(world.get(&format!("/sign-in?code={code}"), &[]).status, 403);
    for access in [Access::Page, Access::Session, token_access(vec![Scope::Read])] {
        assert_eq!(world.pass(&own_key(1), access), Err(HubRefusal::UnknownKey));
    }
    assert_eq!(world.place.rows("SELECT count(*) FROM passes WHERE person IS NOT NULL"), ["0"]);
    // Whoever comes after under the name, and may have the row's number, has nothing of the one before.
    let next = person(&mut world, &key, "operator", 2);
    assert_eq!(count(&world, &next, "/v1/passes"), 2, "the own code and the own browser");
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 401);
}

#[test]
fn person_who_is_dismissed_while_a_request_is_on_its_way_changes_nothing_by_it() {
    let (mut world, key) = world();
    let cookie = person(&mut world, &key, "owner", 1);
    let body = json!({ "name": "Eve", "role": "owner" }).to_string();
    let mut slow = world.connect();
    // The pass is looked at with the head, and the body comes after the dismissal.
    write!(
        slow,
        "POST /v1/people HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{cookie}\r\n{OWN}\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(slow.try_clone().unwrap());
    let mut line = String::new();
    // The hub asks for the body once it wants to read it, which is behind the look at the pass.
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 100"), "{line}");
    assert_eq!(post(&world, &key, "/v1/people/owner/dismiss", &Value::Null).status, 204);
    slow.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("HTTP/1.1 401"), "{answer}");
    assert_eq!(people(&world, &key), [""; 0]);
}

/// A stream of the attic's log: its lines from the first event on.
fn stream(world: &mut World, pass: &str) -> BufReader<TcpStream> {
    let mut stream = world.connect();
    write!(stream, "GET /v1/devices/attic/log HTTP/1.1\r\nhost: hub\r\n{pass}\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    reader
}

/// Reads a stream until a line begins so.
fn read_until(stream: &mut BufReader<TcpStream>, begins: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "it is over without `{begins}`");
        if line.starts_with(begins) {
            return line;
        }
    }
}

#[test]
fn stream_of_events_ends_with_the_person_or_the_role_and_others_go_on() {
    let (mut world, key) = world();
    let (first, second) =
        (person(&mut world, &key, "operator", 1), person(&mut world, &key, "owner", 2));
    let mut streams = [stream(&mut world, &first), stream(&mut world, &second)];
    let share = |world: &mut World, lines: Vec<LogLine>| {
        let next = lines.last().map_or(0, |line| line.number + 1);
        let attic = device(10).device_secret().public_key();
        let answer: Answer<LogWish> =
            world.call_from(attic, function::LOG, &LogShare { boot: 3, lines, next }, now());
        answer.unwrap();
    };
    let line = |number: u64, message: &str| LogLine {
        number,
        at_ms: 1,
        machine: "thermostat".parse().unwrap(),
        level: "info".into(),
        message: message.into(),
        unix_s: None,
        boot: 3,
    };
    share(&mut world, Vec::new());
    share(&mut world, vec![line(0, "before")]);
    for stream in &mut streams {
        assert!(read_until(stream, "data: ").contains("before"));
    }
    assert_eq!(post(&world, &key, "/v1/people/operator/dismiss", &Value::Null).status, 204);
    read_until(&mut streams[0], "event: end");
    share(&mut world, vec![line(1, "after")]);
    assert!(read_until(&mut streams[1], "data: ").contains("after"));
    let role = json!({ "role": "viewer" });
    assert_eq!(post(&world, &key, "/v1/people/owner/role", &role).status, 204);
    read_until(&mut streams[1], "event: end");
}

#[test]
fn person_sees_and_ends_the_own_sessions_and_an_owner_those_of_all() {
    let (mut world, key) = world();
    let (viewer, operator) =
        (person(&mut world, &key, "viewer", 1), person(&mut world, &key, "operator", 2));
    let second = person(&mut world, &key, "owner", 3);
    let passes = |world: &World, pass: &str| -> Vec<(String, String)> {
        let list = world.get("/v1/passes?kind=page", &[pass]).json();
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| (item["id"].to_string(), item["person"].as_str().unwrap_or("").to_string()))
            .collect()
    };
    let of = |list: &[(String, String)]| -> Vec<String> {
        list.iter().map(|(_, person)| person.clone()).collect()
    };
    let own = passes(&world, &viewer);
    assert_eq!(of(&own), ["viewer"]);
    assert_eq!(of(&passes(&world, &key)), ["owner", "operator", "viewer", ""]);
    assert_eq!(of(&passes(&world, &second)), ["owner", "operator", "viewer", ""]);
    // Neither the page nor a file shows more than the list.
    for path in ["/passes", "/passes.csv", "/passes.json"] {
        let text = world.get(path, &[&viewer]).body;
        assert!(text.contains("viewer") && !text.contains("operator"), "{path}: {text}");
    }
    let of_operator = passes(&world, &operator)[0].0.clone();
    for path in
        [format!("/v1/passes/{of_operator}/revoke"), format!("/passes/{of_operator}/revoke")]
    {
        assert_eq!(post(&world, &viewer, &path, &Value::Null).status, 404, "another one's");
    }
    assert_eq!(world.get("/v1/devices", &[&operator]).status, 200);
    let path = format!("/v1/passes/{of_operator}/revoke");
    assert_eq!(post(&world, &second, &path, &Value::Null).status, 204);
    assert_eq!(world.get("/v1/devices", &[&operator]).status, 401);
    let entry =
        world.get("/v1/audit?action=revoked%20a%20pass", &[&key]).json()["items"][0].clone();
    assert_eq!((&entry["by"], &entry["detail"]), (&"owner".into(), &"operator".into()));
    let path = format!("/passes/{}/revoke", own[0].0);
    assert_eq!(post(&world, &viewer, &path, &Value::Null).status, 303, "the own one");
    assert_eq!(world.get("/v1/devices", &[&viewer]).status, 401);
}

#[test]
fn session_says_where_it_is_and_in_which_hour_it_was_used() {
    let (mut world, key) = world();
    let code = world.pass(&owner(1), Access::Page).unwrap().secret;
    let agent =
        "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0 <b>";
    let path = format!("/sign-in?code={code}");
    let reply = world.get(&path, &[agent, "sec-fetch-site: none"]);
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap();
    let cookie = format!("cookie: {cookie}");
    let pass = |world: &World| {
        world.get("/v1/passes?agent=Firefox%20on%20Linux", &[&key]).json()["items"][0].clone()
    };
    assert_eq!(pass(&world)["network"], "this computer");
    let hour = |unix_s: u64| unix_s / 3600 * 3600;
    let began = now();
    let seen = pass(&world)["seen"].as_u64().unwrap();
    assert!((hour(began - 60)..=now()).contains(&seen) && seen % 3600 == 0, "{seen}");
    world.write_by_hand("UPDATE passes SET seen_unix_s = 0 WHERE agent <> ''");
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 200);
    tenure_testbed::wait_until(|| {
        // One that was noted at the same time may have been in the way.
        world.get("/v1/devices", &[&cookie]);
        match pass(&world)["seen"].as_u64().unwrap() {
            0 => Err("its use isn't noted yet"),
            _ => Ok(()),
        }
    });
}

#[test]
fn person_visits_pages_of_machines_as_the_owner_by_that_role_alone() {
    let (mut world, key) = world();
    world.house.put("panel@attic", false, |_| Ok("<h1>21.5</h1>".into()));
    let (operator, second) =
        (person(&mut world, &key, "operator", 1), person(&mut world, &key, "owner", 2));
    let led = world.get("/m/panel@attic/", &[&operator]);
    assert_eq!((led.status, led.header("location")), (303, Some("/sign-in")));
    assert!(!world.get("/devices/attic", &[&operator]).body.contains("Their own pages"));
    assert!(world.house.asked().is_empty());
    let led = world.get("/m/panel@attic/", &[&second]);
    let page = led.header("location").unwrap().to_string();
    assert_eq!(world.get(&page, &[&second]).status, 200);
    assert_eq!(world.house.asked()[0].0, Caller::Owner);
    // The ticket is over with the role.
    let role = json!({ "role": "operator" });
    assert_eq!(post(&world, &key, "/v1/people/owner/role", &role).status, 204);
    assert_eq!(world.get(&page, &[&second]).status, 303);
    assert_eq!(world.house.asked().len(), 1);
}

#[test]
fn page_of_people_invites_from_the_hubs_own_pages_alone_and_shows_the_code_once() {
    let (mut world, key) = world();
    let page = world.get("/people", &[&key]).body;
    assert!(page.contains("invite-name") && page.contains("None."), "{page}");
    let body = "name=Ada+Lovelace&role=operator";
    let foreign = [key.as_str(), "sec-fetch-site: cross-site"];
    assert_eq!(world.request("POST", "/people", &foreign, body).status, 403);
    assert_eq!(people(&world, &key), [""; 0]);
    let reply = world.request("POST", "/people", &[&key, OWN], body);
    assert_eq!((reply.status, reply.header("cache-control")), (201, Some("no-store")));
    let code = reply.body.split("--invitation ").nth(1).unwrap().split('<').next().unwrap();
    assert!(!reply.body.contains("<script"), "nothing asks for that page again");
    assert!(!world.get("/people", &[&key]).body.contains(code));
    opened(&mut world, code, 1).unwrap();
    assert_eq!(people(&world, &key), ["Ada Lovelace operator here "]);
}

#[test]
fn tenant_of_an_open_hub_has_no_people_and_its_pages_open_what_its_tokens_do() {
    let mut world = World::with_fleet();
    world.database.admit(Vec::new(), Some("http://hub".into()));
    let receipt = world::receipt(10, 1, 1, 0, tenure_package::NO_RECEIPT, 5);
    world.hand_in(vec![receipt]).unwrap();
    let cookie = world.cookie(&owner(50));
    assert_eq!(world.get("/v1/receipts", &[&cookie]).status, 200);
    for (path, body) in [
        ("/v1/people", json!({ "name": "Ada", "role": "owner" })),
        ("/v2/house/blobs/uploads/", Value::Null),
        ("/v1/rollouts", json!({})),
    ] {
        assert_eq!(post(&world, &cookie, path, &body).status, 403, "{path}");
    }
}

#[test]
fn passes_of_the_version_before_people_are_good_and_their_key_is_the_only_one() {
    let place = Place::in_a_folder();
    let old = rusqlite::Connection::open(place.address()).unwrap();
    for step in 1..=11 {
        let migrations = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let step = std::fs::read_to_string(migrations.join(format!("{step}.sql"))).unwrap();
        old.execute_batch(&step).unwrap();
    }
    old.execute_batch("PRAGMA application_id = 0x546E4862; PRAGMA user_version = 11").unwrap();
    let pass = "INSERT INTO passes (secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s) \
         VALUES (?1, 'token', ?2, 'old', 'read rollouts passes', 7, 9000000000)";
    let who = owner(1).verifying_key().to_string();
    old.execute(pass, rusqlite::params![tenure_crypto::sha256(&[b"old"]).0.to_vec(), who]).unwrap();
    drop(old);
    let world = World::at(place).and_fleet();
    let token = "authorization: Bearer old";
    assert_eq!(count(&world, token, "/v1/devices"), 2);
    let pass = world.get("/v1/passes", &[token]).json()["items"][0].clone();
    assert_eq!((&pass["person"], &pass["name"]), (&Value::Null, &"old".into()));
    // It acknowledges alarms, as it did; it doesn't invite people.
    let said = json!({ "by": "Ada", "word": "on it" });
    assert_eq!(post(&world, token, "/v1/rule-alarms/1/acknowledge", &said).status, 404);
    let new = json!({ "name": "Ada", "role": "owner" });
    assert_eq!(post(&world, token, "/v1/people", &new).status, 403);
}

#[test]
fn every_path_of_people_and_passes_in_the_openapi_document_answers() {
    let (mut world, cookie) = world();
    world.token(&owner(1));
    let passes = world.get("/v1/passes", &[&cookie]).json();
    let mut passes = passes["items"].as_array().unwrap().iter();
    let token = passes.find(|pass| pass["kind"] == "token").unwrap()["id"].to_string();
    let document = world.get("/v1/openapi.json", &[]).json();
    let below = ["/v1/people/", "/v1/passes/"];
    let paths = document["paths"].as_object().unwrap().iter();
    let mut count = 0;
    for (path, methods) in paths.filter(|(path, _)| below.iter().any(|at| path.starts_with(at))) {
        invite(&world, &cookie, "Ada", "viewer");
        let place = path.replace("{name}", "Ada").replace("{id}", &token);
        for (method, operation) in methods.as_object().unwrap() {
            assert_eq!(method, "post", "{path}");
            let body = match operation["requestBody"].is_null() {
                true => Value::Null,
                false => json!({ "role": "operator" }),
            };
            let status = post(&world, &cookie, &place, &body).status;
            let is_described = !operation["responses"][status.to_string()].is_null();
            assert!(is_described && status == 204, "{place}: {status}");
            count += 1;
        }
    }
    assert_eq!(count, 3, "a person's role and end, and a pass's");
}
