//! Nobody gets in or stays in at a hub: neither by a pass that is narrower than what it gives, nor by a key that isn't an owner's
//! any more, nor by a pass that is over; and no person takes another's share of the hub.

use super::world;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use tenure_crypto::SigningKey;
use tenure_hub_server::sign_in_request;
use tenure_testbed::patience;
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Request, Response, Scope, function};

use world::watching::{rule, watching};
use world::{HUB, SESSION, World, now, owner, owner_keys, token_access};

const OWN: &str = "sec-fetch-site: same-origin";

/// The key of a person's own.
fn own_key(number: u8) -> SigningKey {
    owner(100 + number)
}

fn post(world: &World, pass: &str, path: &str, body: &Value) -> world::Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.request("POST", path, &[pass, OWN], &body)
}

fn invited(world: &World, pass: &str, name: &str, role: &str) -> u16 {
    post(world, pass, "/v1/people", &json!({ "name": name, "role": role })).status
}

fn code(world: &World, pass: &str, name: &str, role: &str) -> String {
    let reply = post(world, pass, "/v1/people", &json!({ "name": name, "role": role }));
    assert_eq!(reply.status, 201, "{}", reply.body);
    let told: Value = serde_json::from_str(&reply.body).unwrap();
    told["code"].as_str().unwrap().into()
}

fn opened(world: &mut World, code: &str, number: u8) -> Answer<Pass> {
    world.pass(&own_key(number), Access::Invitation { code: code.into() })
}

/// A person of that name and role, with the cookie of a browser.
fn person(world: &mut World, pass: &str, name: &str, role: &str, number: u8) -> String {
    let code = code(world, pass, name, role);
    opened(world, &code, number).unwrap();
    world.cookie(&own_key(number))
}

fn names(world: &World, pass: &str) -> Vec<String> {
    let list = world.get("/v1/people", &[pass]).json();
    let word = |item: &Value, name: &str| item[name].as_str().unwrap_or("").to_string();
    let line = |item: &Value| format!("{} {}", word(item, "name"), word(item, "role"));
    list["items"].as_array().unwrap().iter().map(line).collect()
}

/// By whom the last entry of that action is.
fn noted_by(world: &World, pass: &str, action: &str) -> String {
    let entries = world.get("/v1/audit?limit=1000", &[pass]).json();
    let entry = entries["items"].as_array().unwrap().iter().find(|entry| entry["action"] == action);
    entry.unwrap()["by"].as_str().unwrap().into()
}

/// A hub whose owner 1 is signed in, with that one's cookie.
fn world() -> (World, String) {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    (world, cookie)
}

//
#[test]
fn pass_gives_and_takes_no_role_that_opens_more_than_it_does_itself() {
    let (mut world, key) = world();
    person(&mut world, &key, "Olga", "owner", 1);
    person(&mut world, &key, "Vera", "viewer", 2);
    code(&world, &key, "Otto", "owner");
    let alone = world.token_for(&owner(1), vec![Scope::People]);
    let of_viewers = world.token_for(&owner(1), vec![Scope::People, Scope::Read, Scope::Passes]);
    let of_person = world.token_for(&own_key(1), vec![Scope::People, Scope::Read, Scope::Passes]);
    let to = |role: &str| json!({ "role": role });
    for role in ["viewer", "operator", "owner"] {
        assert_eq!(invited(&world, &alone, "Mallory", role), 403, "{role}");
    }
    for pass in [&of_viewers, &of_person] {
        for role in ["operator", "owner"] {
            assert_eq!(invited(&world, pass, "Mallory", role), 403);
            assert_eq!(post(&world, pass, "/v1/people/Vera/role", &to(role)).status, 403);
        }
        // Neither up nor down nor out, who goes further; nor the invitation of one who does.
        assert_eq!(post(&world, pass, "/v1/people/Olga/role", &to("viewer")).status, 403);
        assert_eq!(post(&world, pass, "/v1/people/Olga/dismiss", &Value::Null).status, 403);
        assert_eq!(post(&world, pass, "/v1/people/Otto/dismiss", &Value::Null).status, 403);
        assert_eq!(invited(&world, pass, "Otto", "viewer"), 403);
    }
    assert_eq!(names(&world, &key), ["Olga owner", "Otto owner", "Vera viewer"]);
    // As far as the token goes it does what it is for, and the log names it.
    assert_eq!(invited(&world, &of_viewers, "Nina", "viewer"), 201);
    assert_eq!(noted_by(&world, &key, "invited"), "token test");
    assert_eq!(post(&world, &of_person, "/v1/people/Nina/dismiss", &Value::Null).status, 204);
    assert_eq!(noted_by(&world, &key, "dismissed"), "Olga, token test");
    assert!(world.place.read(|| world.database.verify_audit()).is_ok());
}

// what a token or a person began isn't open any more once they are gone.
#[test]
fn invitations_of_who_may_invite_no_longer_are_taken_back() {
    let (mut world, key) = world();
    let scopes = vec![Scope::People, Scope::Read, Scope::Passes];
    let token = world.token_for(&owner(1), scopes);
    let by_token = code(&world, &token, "Nina", "viewer");
    let passes = world.get("/v1/passes?kind=token", &[&key]).json();
    let id = passes["items"][0]["id"].clone();
    assert_eq!(post(&world, &key, &format!("/v1/passes/{id}/revoke"), &Value::Null).status, 204);
    assert_eq!(opened(&mut world, &by_token, 1), Err(HubRefusal::Invitation));

    let olga = person(&mut world, &key, "Olga", "owner", 2);
    let otto = person(&mut world, &key, "Otto", "owner", 3);
    let own = code(&world, &key, "Kim", "viewer");
    let (by_olga, by_otto) =
        (code(&world, &olga, "Mallory", "owner"), code(&world, &otto, "Eve", "owner"));
    assert_eq!(post(&world, &key, "/v1/people/Olga/dismiss", &Value::Null).status, 204);
    let down = json!({ "role": "viewer" });
    assert_eq!(post(&world, &key, "/v1/people/Otto/role", &down).status, 204);
    for code in [by_olga, by_otto] {
        assert_eq!(opened(&mut world, &code, 4), Err(HubRefusal::Invitation));
    }
    assert_eq!(names(&world, &key), ["Kim viewer", "Otto viewer"]);
    opened(&mut world, &own, 4).unwrap();
}

fn in_session(world: &mut World, pass: &Pass) -> Answer<u16> {
    let (method, path) = ("GET".into(), "/v1/devices".into());
    let (pass, headers, body) = (pass.secret.clone(), Vec::new(), Vec::new());
    let request = Request { pass, method, path, headers, body };
    let answer: Answer<Response> = world.call(function::REQUEST, &request);
    answer.map(|response| response.status)
}

//
#[test]
fn owner_whom_the_hub_no_longer_names_keeps_nothing_and_does_not_come_back() {
    let (mut world, key) = world();
    // A receipt of its device, and the device itself, are listed still.
    world.hand_in(vec![world::receipt(12, 2, 1, 0, tenure_package::NO_RECEIPT, 5)]).unwrap();
    let (token, cookie) = (world.token(&owner(2)), world.cookie(&owner(2)));
    let session = world.pass(&owner(2), Access::Session).unwrap();
    let ada = person(&mut world, &cookie, "Ada", "owner", 1);
    let open = code(&world, &cookie, "Bob", "owner");
    let waiting = world.pass(&owner(2), Access::Page).unwrap().secret;
    world.database.admit(vec![owner(1).verifying_key()], Some("http://hub".into()));
    for is_ended in [false, true] {
        for pass in [&token, &cookie, &ada] {
            assert_eq!(world.get("/v1/devices", &[pass]).status, 401, "{is_ended}");
            assert_eq!(invited(&world, pass, "Mallory", "owner"), 401);
        }
        assert_eq!(in_session(&mut world, &session), Err(HubRefusal::Pass));
        assert_eq!(world.get(&format!("/sign-in?code={waiting}"), &[]).status, 403);
        assert_eq!(opened(&mut world, &open, 2), Err(HubRefusal::Invitation));
        for signer in [owner(2), own_key(1)] {
            for access in [Access::Page, Access::Session, token_access(vec![Scope::Read])] {
                assert_eq!(world.pass(&signer, access), Err(HubRefusal::UnknownKey));
            }
        }
        if !is_ended {
            world.database.end_former_owners();
        }
    }
    assert_eq!(world.get("/v1/devices", &[&key]).status, 200, "who is an owner still");
    let who = owner(2).verifying_key();
    let left = format!(
        "SELECT (SELECT count(*) FROM passes WHERE who = '{who}') + (SELECT count(*) FROM people)"
    );
    assert_eq!(world.place.rows(&left), ["0"]);
    let ended = "SELECT detail FROM audit WHERE action = 'owner no longer'";
    assert_eq!(world.place.rows(ended), ["6 passes, 2 people"]);
    // A start that has nothing to end writes nothing.
    world.database.end_former_owners();
    assert_eq!(world.place.rows(ended).len(), 1);
    // Named once more it begins anew.
    world.database.admit(owner_keys(), Some("http://hub".into()));
    for pass in [&token, &cookie, &ada] {
        assert_eq!(world.get("/v1/devices", &[pass]).status, 401);
    }
    assert_eq!(world.pass(&own_key(1), Access::Page), Err(HubRefusal::UnknownKey));
}

// after `--open` as well.
#[test]
fn strangers_of_an_open_hub_are_tenants_at_most_once_it_names_its_owners() {
    let (mut world, _) = world();
    world.database.admit(Vec::new(), Some("http://hub".into()));
    world.list(9, 30, "barn");
    world.hand_in(vec![world::receipt(10, 1, 1, 0, tenure_package::NO_RECEIPT, 5)]).unwrap();
    let (stranger, tenant) =
        (world.token(&owner(9)), world.token_for(&owner(50), vec![Scope::Read]));
    assert_eq!(world.get("/v1/devices", &[&stranger]).status, 200);
    world.database.admit(vec![owner(1).verifying_key()], Some("http://hub".into()));
    assert_eq!(world.get("/v1/devices", &[&stranger]).status, 401);
    assert_eq!(world.pass(&owner(9), Access::Page), Err(HubRefusal::UnknownKey));
    // A tenant sees its bills, and gets no further by a token of before.
    world.write_by_hand(
        "UPDATE passes SET scopes = 'read packages people rollouts' WHERE scopes = 'read'",
    );
    assert_eq!(world.get("/v1/receipts", &[&tenant]).status, 200);
    assert_eq!(invited(&world, &tenant, "Mallory", "viewer"), 403);
    world.database.end_former_owners();
    assert_eq!(world.get("/v1/receipts", &[&tenant]).status, 401, "it went further");
    let tenant = world.token_for(&owner(50), vec![Scope::Read, Scope::Receipts]);
    world.database.end_former_owners();
    assert_eq!(world.get("/v1/receipts", &[&tenant]).status, 200, "this one doesn't");
}

/// A request whose head has come, and whose body hasn't: the hub wants it.
fn begun(world: &World, pass: &str, path: &str, length: usize) -> BufReader<TcpStream> {
    let mut stream = world.connect();
    stream.set_read_timeout(Some(patience())).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{pass}\r\n{OWN}\r\nexpect: 100-continue\r\n\
         content-length: {length}\r\n\r\n",
    )
    .unwrap();
    BufReader::new(stream)
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

//
#[test]
fn pass_that_ends_while_a_request_is_on_its_way_changes_nothing_by_it() {
    let (mut world, key) = world();
    let ends: [&dyn Fn(&World); 2] = [
        &|world| {
            let passes = world.get("/v1/passes?kind=token", &[&key]).json();
            let path = format!("/v1/passes/{}/revoke", passes["items"][0]["id"]);
            assert_eq!(post(world, &key, &path, &Value::Null).status, 204);
        },
        &|world| {
            world.place.write_by_hand("UPDATE passes SET expires_unix_s = 1 WHERE kind = 'token'")
        },
    ];
    let receipt =
        data_encoding::HEXLOWER.encode(&world::receipt(10, 1, 1, 0, tenure_package::NO_RECEIPT, 5));
    let invitation = json!({ "name": "Eve", "role": "owner" }).to_string();
    for end in ends {
        for (path, body) in [("/v1/people", &invitation), ("/v1/receipts", &receipt)] {
            let token = world.token(&owner(1));
            let mut slow = begun(&world, &token, path, body.len());
            assert!(line(&mut slow).starts_with("HTTP/1.1 100"));
            end(&world);
            slow.get_mut().write_all(body.as_bytes()).unwrap();
            let mut answer = String::new();
            slow.read_to_string(&mut answer).unwrap();
            assert!(answer.contains("HTTP/1.1 401"), "{path}: {answer}");
        }
    }
    assert_eq!(names(&world, &key), [""; 0]);
    assert_eq!(world.place.rows("SELECT count(*) FROM receipts"), ["0"]);
}

//
#[test]
fn bodies_that_stall_take_no_place_of_the_key_s_own_or_of_another_person_s() {
    let (mut world, key) = world();
    let viewer = person(&mut world, &key, "Vera", "viewer", 1);
    let operator = person(&mut world, &key, "Olga", "operator", 2);
    let other = person(&mut world, &key, "Otto", "owner", 3);
    let token = world.token_for(&owner(1), vec![Scope::Rollouts]);
    // What the pass doesn't open is refused before a byte of the body.
    let mut refused = begun(&world, &viewer, "/v1/rollouts", 5_000);
    assert!(line(&mut refused).starts_with("HTTP/1.1 403"));
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stalled = begun(&world, &operator, "/v1/rollouts", 5_000);
        assert!(line(&mut stalled).starts_with("HTTP/1.1 100"));
        stalled.get_mut().write_all(b"{").unwrap();
        slow.push(stalled);
    }
    slow.extend((0..20).map(|_| begun(&world, &operator, "/v1/rollouts", 5_000)));
    for round in 0..5 {
        assert_eq!(invited(&world, &other, &format!("a{round}"), "viewer"), 201);
        assert_eq!(invited(&world, &key, &format!("b{round}"), "viewer"), 201);
    }
    drop(slow);
    // A token of the key itself leaves a place to its browser, too.
    let slow: Vec<_> = (0..20).map(|_| begun(&world, &token, "/v1/rollouts", 5_000)).collect();
    assert_eq!(invited(&world, &key, "c", "viewer"), 201);
    drop(slow);
}

//
#[test]
fn signature_is_judged_before_anything_is_said_of_a_key() {
    let (mut world, key) = world();
    person(&mut world, &key, "Ada", "viewer", 1);
    world.hand_in(vec![world::receipt(10, 1, 1, 0, tenure_package::NO_RECEIPT, 5)]).unwrap();
    for known in [owner(1), owner(50), own_key(1), owner(99)] {
        for access in [
            Access::Page,
            Access::Session,
            token_access(vec![Scope::People]),
            Access::Invitation { code: "0".repeat(40) },
        ] {
            let mut forged = sign_in_request(&owner(98), HUB, SESSION, access);
            forged.key = known.verifying_key();
            let answer: Answer<Pass> = world.call(function::SIGN_IN, &forged);
            assert_eq!(answer, Err(HubRefusal::Signature));
        }
    }
}

#[test]
fn look_at_the_address_of_a_sign_in_opens_nothing_and_a_browser_that_may_be_led_there_is_asked() {
    let (mut world, _) = world();
    let code = world.pass(&owner(1), Access::Page).unwrap().secret;
    let path = format!("/sign-in?code={code}");
    let head = world.request("HEAD", &path, &[], "");
    assert_eq!((head.status, head.header("set-cookie")), (200, None));
    // Over plain HTTP to another computer a browser says nothing of the site that led it here.
    for browser in ["upgrade-insecure-requests: 1", "user-agent: Mozilla/5.0 (X11; Linux x86_64)"] {
        let asked = world.get(&path, &[browser]);
        assert_eq!((asked.status, asked.header("set-cookie")), (200, None), "{browser}");
        assert!(asked.body.contains(&code), "the form asks");
    }
    // The form says where it comes from.
    let form = ["origin: http://hub", "upgrade-insecure-requests: 1"];
    assert_eq!(world.request("POST", "/sign-in", &form, &format!("code={code}")).status, 303);
}

#[test]
fn hub_under_tls_is_gone_to_over_tls_alone() {
    let by_tls = World::reached(true);
    let reply = by_tls.get("/sign-in", &[]);
    assert_eq!(reply.header("strict-transport-security"), Some("max-age=31536000"));
    let (plain, _) = world();
    assert_eq!(plain.get("/sign-in", &[]).header("strict-transport-security"), None);
}

// A-3 and issue 57: at each place where names of people are compared.
#[test]
fn names_that_read_alike_are_one_person_s_and_those_that_mislead_are_nobody_s() {
    let (mut world, key) = world();
    for name in [
        ".",
        "..",
        "...",
        "\u{FF0E}\u{FF0E}",
        "Ad\u{200B}a",
        "\u{FF21}\u{308}da",
        "\u{410}da",
        "token ci",
        "Ada, token ci",
    ] {
        assert_eq!(invited(&world, &key, name, "viewer"), 422, "{name:?}");
    }
    let ada = code(&world, &key, "\u{C4}da", "viewer");
    for like in ["\u{E4}da", "\u{C4}DA"] {
        assert_eq!(invited(&world, &key, like, "viewer"), 409, "{like}");
    }
    // The same name, written otherwise, is the same invitation.
    let again = code(&world, &key, "A\u{308}da", "viewer");
    assert_eq!(opened(&mut world, &ada, 1), Err(HubRefusal::Invitation));
    opened(&mut world, &again, 1).unwrap();
    assert_eq!(invited(&world, &key, "\u{E4}da", "viewer"), 409);
    assert_eq!(names(&world, &key), ["\u{C4}da viewer"]);
    let role = json!({ "role": "operator" });
    assert_eq!(post(&world, &key, "/v1/people/A%CC%88da/role", &role).status, 204);
    assert_eq!(post(&world, &key, "/v1/people/%C3%A4DA/dismiss", &Value::Null).status, 204);
    assert_eq!(names(&world, &key), [""; 0]);
}

//
#[test]
fn nobody_acknowledges_an_alarm_in_the_name_of_a_person() {
    let (mut world, key) = world();
    watching(&world, vec![rule("away", "silent > 20m")]).turn(now() + 2_000).unwrap();
    person(&mut world, &key, "Ada", "operator", 1);
    let bot = world.token_for(&owner(1), vec![Scope::Alarms]);
    let id = world.get("/v1/rule-alarms?device=attic", &[&key]).json()["items"][0]["id"].clone();
    let path = format!("/v1/rule-alarms/{id}/acknowledge");
    let said = |by: &str| json!({ "by": by, "word": "on it, go to bed" });
    for pass in [&bot, &key] {
        for name in ["Ada", "ada", " ADA ", "\u{410}da", "Ad\u{430}"] {
            assert_eq!(post(&world, pass, &path, &said(name)).status, 422, "{name}");
        }
    }
    assert_eq!(post(&world, &bot, &path, &said("the bot")).status, 204);
    assert_eq!(noted_by(&world, &key, "alarm acknowledged"), "token test");
}
