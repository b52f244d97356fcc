//! Pages and API as a browser and a program meet them, over real sockets; some clients mean harm.

mod tools;

use super::world;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tenure_hub_server::sign_in_request;
use tenure_package::{NO_RECEIPT, digest_of_receipt};
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Scope, Taken, function};
use tenure_wire::{Digest, PublicKey};

use world::{HUB, SESSION, World, owner, package, push, receipt};

#[test]
fn cookie_of_pages_behind_tls_never_travels_without_it() {
    let cookie_of = |by_tls: bool| {
        let mut world = World::reached(by_tls);
        let code = world.pass(&owner(1), Access::Page).unwrap().secret;
        let reply = world.get(&format!("/sign-in?code={code}"), &[]);
        reply.header("set-cookie").unwrap().to_string()
    };
    // nobody else sets it, and no other port is told it.
    let by_tls = cookie_of(true);
    assert!(
        by_tls.contains("; Secure; HttpOnly; ") && by_tls.starts_with("__Host-tenure_session=")
    );
    assert!(!cookie_of(false).contains("Secure"));
    // with this prefix a browser takes it from no other host, and from no page without TLS.
    assert!(cookie_of(true).starts_with("__Host-tenure_session="));
}

// a page of a tenant's at another port of this host sets a cookie of the hub's name.
#[test]
fn session_that_another_page_set_beside_the_own_or_without_the_prefix_signs_nobody_in() {
    let mut world = World::with_fleet();
    let (own, foreign) = (world.cookie(&owner(1)), world.cookie(&owner(2)));
    let pair = |cookie: &str| cookie.strip_prefix("cookie: ").unwrap().to_string();
    assert_eq!(world.get("/v1/devices", &[&own]).status, 200);
    for both in [
        format!("{foreign}; {}", pair(&own)),
        format!("{own};{}", pair(&foreign)),
        format!("{own}; tenure_session="),
    ] {
        assert_eq!(world.get("/v1/devices", &[&both]).status, 401, "{both}");
    }
    assert_eq!(world.get("/v1/devices", &[&own, &foreign]).status, 401, "in two fields");
    assert_eq!(world.get("/v1/devices", &[&format!("{own}; {}; a=b", pair(&own))]).status, 200);
    let mut world = World::reached(true);
    let own = world.cookie(&owner(1));
    let injected = own.replace("__Host-", "");
    assert_eq!(world.get("/v1/devices", &[&own]).status, 200);
    assert_eq!(world.get("/v1/devices", &[&injected]).status, 401);
    let beside = format!("{own}; {}", pair(&injected).replace("session=", "session=0"));
    assert_eq!(world.get("/v1/devices", &[&beside]).status, 200, "another name is none of ours");
}

#[test]
fn nobody_sees_anything_without_a_pass() {
    let world = World::with_fleet();
    for path in ["/v1/devices", "/v1/receipts", "/v1/bills", "/metrics", "/v1/audit"] {
        assert_eq!(world.get(path, &[]).status, 401, "{path}");
        assert_eq!(world.get(path, &["authorization: Bearer 00"]).status, 401, "{path}");
        assert_eq!(world.get(path, &["cookie: tenure_session="]).status, 401, "{path}");
    }
    for path in ["/", "/devices", "/devices/attic", "/bills", "/devices.csv"] {
        let reply = world.get(path, &[]);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/sign-in")), "{path}");
    }
}

#[test]
fn owner_who_signs_in_sees_the_own_fleet_and_nobody_elses() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    let page = world.get("/", &[&cookie]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains(">attic<") && page.body.contains(">cellar<"), "{}", page.body);
    assert!(!page.body.contains("shed"));
    assert_eq!(world.get("/devices/shed", &[&cookie]).status, 404);
    let page = world.get("/devices/attic", &[&cookie]);
    assert!(page.body.contains("thermostat") && page.body.contains("reachable"));
    let token = world.token(&owner(2));
    let devices = world.get("/v1/devices", &[&token]).json();
    assert_eq!(devices["items"].as_array().unwrap().len(), 1);
    assert_eq!(devices["items"][0]["device"], "shed");
    assert_eq!(
        world.get("/v1/machines?device=attic", &[&token]).json()["items"],
        Value::Array(vec![])
    );
    assert_eq!(world.get("/v1/audit", &[&token]).json()["items"].as_array().unwrap().len(), 2);
}

#[test]
fn commands_that_install_are_shown_to_the_owner_of_the_device_with_the_own_packages_alone() {
    let mut world = World::with_fleet();
    world.hand_in(vec![receipt(10, 1, 1, 0, NO_RECEIPT, 1)]).unwrap();
    let shows = |world: &mut World, whose: u8| {
        let cookie = world.cookie(&owner(whose));
        let page = world.get("/devices/attic", &[&cookie]);
        assert_eq!(page.status, 200);
        page.body.contains("tenure install")
    };
    // The tenant has a receipt of the device, and doesn't own it.
    assert!(!shows(&mut world, 50));
    assert!(!shows(&mut world, 1), "the owner pushed nothing");
    let token = world.token(&owner(1));
    assert_eq!(push(&world, &token, "house/thermostat", &package("1.0.0")).status, 201);
    assert!(shows(&mut world, 1) && !shows(&mut world, 50));
}

#[test]
fn tenant_has_no_room_for_packages_and_starts_nothing_here() {
    let mut world = World::with_fleet();
    world.hand_in(vec![receipt(10, 1, 1, 0, NO_RECEIPT, 1)]).unwrap();
    let token = |scopes: &[Scope]| Access::Token {
        name: "ci".parse().unwrap(),
        days: 1,
        scopes: scopes.to_vec(),
    };
    for owners in [world::owner_keys(), Vec::new()] {
        world.database.admit(owners, Some("http://hub".into()));
        for (key, scopes, is_let_in) in [
            (50, &[Scope::Read, Scope::Receipts][..], true),
            (50, &[Scope::Read, Scope::Packages], false),
            (50, &[Scope::Rollouts], false),
            (1, &[Scope::Packages, Scope::Rollouts], true),
        ] {
            let pass = world.pass(&owner(key), token(scopes));
            assert_eq!(pass.is_ok(), is_let_in, "{key} {scopes:?}: {pass:?}");
            assert!(is_let_in || pass == Err(HubRefusal::TenantAlone), "{pass:?}");
        }
    }
    let cookie = world.cookie(&owner(50));
    assert_eq!(world.get("/v1/receipts", &[&cookie]).status, 200, "it sees its bills");
}

#[test]
fn code_opens_the_pages_once() {
    let mut world = World::with_fleet();
    let code = world.pass(&owner(1), Access::Page).unwrap().secret;
    let path = format!("/sign-in?code={code}");
    let cookie = format!("cookie: tenure_session={code}");
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 401, "a code is no session");
    let asked = world.get(&path, &["sec-fetch-site: cross-site"]);
    assert_eq!(asked.status, 200, "a link from elsewhere is asked about");
    assert_eq!(world.get(&path, &[]).status, 303);
    assert_eq!(world.get(&path, &[]).status, 403);
    let token = world.token(&owner(1));
    let secret = token.strip_prefix("authorization: Bearer ").unwrap();
    assert_eq!(
        world.get(&format!("/sign-in?code={secret}"), &[]).status,
        403,
        "a token is no code"
    );
}

#[test]
fn code_that_somebody_guesses_waits_for_no_write_and_none_waits_for_it() {
    let mut world = World::with_fleet();
    // A transaction of the directory is under way, which a write would have to wait for.
    world.list_until(1, 13, "den", world::now() + 600);
    for guess in ["0".repeat(40), "x".into()] {
        assert_eq!(world.get(&format!("/sign-in?code={guess}"), &[]).status, 403);
        let form = format!("code={guess}");
        assert_eq!(
            world.request("POST", "/sign-in", &["sec-fetch-site: same-origin"], &form).status,
            403
        );
    }
    world.commit();
}

#[test]
fn signature_counts_for_one_key_session_and_hub_alone() {
    let mut world = World::with_fleet();
    let stranger = world.pass(&owner(9), Access::Page);
    assert_eq!(stranger, Err(HubRefusal::UnknownKey));
    let (elsewhere, key) = (PublicKey([8; 32]), owner(1));
    for (hub, session) in [(elsewhere, SESSION), (HUB, elsewhere)] {
        let request = sign_in_request(&key, hub, session, Access::Page);
        let answer: Answer<Pass> = world.call(function::SIGN_IN, &request);
        assert_eq!(answer, Err(HubRefusal::Signature));
    }
    let mut request = sign_in_request(&key, HUB, SESSION, Access::Page);
    request.access =
        Access::Token { name: "longer".parse().unwrap(), days: 366, scopes: Vec::new() };
    let answer: Answer<Pass> = world.call(function::SIGN_IN, &request);
    assert_eq!(answer, Err(HubRefusal::Signature), "for another pass than was signed");
}

#[test]
fn sign_ins_of_one_key_are_bounded_and_others_still_sign_in() {
    let mut world = World::with_fleet();
    let refused = (0..200).map(|_| world.pass(&owner(1), Access::Page)).filter(Result::is_err);
    assert_eq!(refused.count(), 200 - 64);
    assert!(world.pass(&owner(2), Access::Page).is_ok());
}

#[test]
fn change_that_another_site_asks_a_browser_for_is_refused() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    let forged: [&[&str]; 4] = [
        &["sec-fetch-site: cross-site"],
        &["sec-fetch-site: same-site", "origin: http://hub"],
        &["origin: http://evil.example"],
        &[],
    ];
    for headers in forged {
        let headers = [headers, &[cookie.as_str()]].concat();
        assert_eq!(world.request("POST", "/sign-out", &headers, "").status, 403, "{headers:?}");
        assert_eq!(world.request("POST", "/v1/receipts", &headers, "00").status, 403);
    }
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 200, "still signed in");
    let own = [cookie.as_str(), "sec-fetch-site: same-origin"];
    assert_eq!(world.request("POST", "/sign-out", &own, "").status, 303);
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 401);
}

#[test]
fn token_is_revoked_by_its_own_key_alone() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let id = world.get("/v1/passes?kind=token", &[&token]).json()["items"][0]["id"].clone();
    let path = format!("/passes/{id}/revoke");
    let other = world.token(&owner(2));
    assert_eq!(world.request("POST", &path, &[&other], "").status, 404);
    assert_eq!(world.get("/v1/devices", &[&token]).status, 200);
    assert_eq!(world.request("POST", &path, &[&token], "").status, 303);
    assert_eq!(world.get("/v1/devices", &[&token]).status, 401);
}

#[test]
fn list_takes_32_filters_and_no_more() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let path = |count| format!("/v1/devices?{}", vec!["device=attic"; count].join("&"));
    assert_eq!(world.get(&path(32), &[&token]).json()["items"][0]["device"], "attic");
    assert_eq!(world.get(&path(33), &[&token]).status, 400);
}

#[test]
fn script_and_sql_in_any_parameter_are_text() {
    let mut world = World::with_fleet();
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    let hostile = [
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "'%20OR%201%3D1%20--",
        "%27%29%20UNION%20SELECT%20seed%20FROM%20identity%20--",
        "%25",
        "%00",
    ];
    for text in hostile {
        for column in ["q", "device", "state", "machines", "address"] {
            let page = world.get(&format!("/devices?{column}={text}"), &[&cookie]);
            assert_eq!(page.status, 200, "{column}={text}");
            assert!(!page.body.contains("<script>alert") && !page.body.contains("<img"), "{text}");
            let api = world.get(&format!("/v1/devices?{column}={text}"), &[&token]).json();
            assert_eq!(api["items"].as_array().unwrap().len(), 0, "{column}={text}");
        }
        for parameter in ["sort", "limit", "skip", "nothing"] {
            let reply = world.get(&format!("/v1/devices?{parameter}={text}"), &[&token]);
            assert_eq!(reply.status, 400, "{parameter}={text}");
        }
        let page = world.get(&format!("/sign-in?code={text}"), &["sec-fetch-site: cross-site"]);
        assert!(!page.body.contains("<script") && !page.body.contains("<img"), "{}", page.body);
    }
}

#[test]
fn every_answer_keeps_pages_to_themselves() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    for path in ["/", "/sign-in", "/nothing", "/v1/devices", "/bills", "/style.css", "/live.js"] {
        let reply = world.get(path, &[&cookie]);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert!(!reply.body.contains("//cdn") && !reply.body.contains("https://"), "{path}");
        assert!(!reply.body.contains(" style=") && !reply.body.contains(" onclick="), "{path}");
    }
}

#[test]
fn path_tricks_and_methods_find_nothing() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/devices/..%2f..%2fhub.sqlite",
        "/hub.sqlite",
        "//etc/passwd",
        "/v1/../hub.sqlite",
        "/devices/%00",
        "/v1/identity",
        "/v1/sqlite_schema",
    ] {
        let status = world.get(path, &[&cookie]).status;
        assert!(status == 404 || status == 400, "{path}: {status}");
    }
    let own = [cookie.as_str(), "sec-fetch-site: same-origin"];
    assert_eq!(world.request("DELETE", "/v1/devices", &own, "").status, 405);
}

#[test]
fn upload_of_ten_gigabytes_and_headers_without_end_are_refused_and_the_hub_goes_on() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let head =
        format!("POST /v1/receipts HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{token}\r\n");
    let reply = world.send(&format!("{head}content-length: 10737418240\r\n\r\n00"));
    assert_eq!(reply.status, 413);
    let many = "x: y\r\n".repeat(1000);
    assert_eq!(world.send(&format!("GET / HTTP/1.1\r\nhost: hub\r\n{many}\r\n")).status, 431);
    assert_eq!(world.get("/v1/devices", &[&token]).status, 200);
}

#[test]
fn receipts_of_one_device_are_bounded_by_the_day_and_others_are_taken() {
    let mut world = World::with_fleet();
    let nth = |device, number| receipt(device, 1, 1, number, NO_RECEIPT, 1);
    assert_eq!(world.hand_in(vec![nth(10, 0)]), Ok(Taken { new: 1, known: 0 }));
    // 9,998 more that the hub took today: signing so many takes long.
    let columns = "previous, owner, tenant, device_key, machine, name, package, tier, began_unix_s, \
         ended_unix_s, taken_unix_s, month, counted_ms, fuel, run_us, memory_bytes_peak, flash_bytes, \
         messages, air_bytes, signed";
    world.write_by_hand(&format!(
        "INSERT INTO receipts (digest, number, {columns})
         WITH RECURSIVE more (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM more WHERE at < 9998)
         SELECT digest || at, at, {columns} FROM receipts, more"
    ));
    let last = nth(10, 9_999);
    assert_eq!(world.hand_in(vec![last.clone()]), Ok(Taken { new: 1, known: 0 }));
    assert_eq!(world.hand_in(vec![nth(10, 10_000)]), Err(HubRefusal::TooMany));
    assert_eq!(world.hand_in(vec![last]), Ok(Taken { new: 0, known: 1 }), "it is there already");
    assert_eq!(world.hand_in(vec![nth(11, 0)]), Ok(Taken { new: 1, known: 0 }));
}

#[test]
fn receipts_are_taken_once_and_priced_for_owner_and_tenant() {
    let mut world = World::with_fleet();
    let first = receipt(10, 1, 1, 0, NO_RECEIPT, 2_000_000);
    let second = receipt(10, 1, 1, 1, digest_of_receipt(&first), 1_000_000);
    assert_eq!(world.hand_in(vec![first.clone()]), Ok(Taken { new: 1, known: 0 }));
    assert_eq!(world.hand_in(vec![first.clone(), second]), Ok(Taken { new: 1, known: 1 }));
    for key in [owner(1), owner(50)] {
        let token = world.token_for(&key, vec![Scope::Read]);
        let bills = world.get("/v1/bills?month=2026-11", &[&token]).json();
        assert_eq!(bills["items"].as_array().unwrap().len(), 1);
        assert_eq!(bills["items"][0]["price_millionths"], "21");
        assert_eq!(bills["items"][0]["device"], "attic");
        assert_eq!(world.get("/v1/alarms", &[&token]).json()["items"], Value::Array(vec![]));
        assert_eq!(
            world.get("/v1/bills?month=2026-10", &[&token]).json()["items"],
            Value::Array(vec![])
        );
    }
    let token = world.token(&owner(1));
    for malformed in
        ["2026-13", "2026-00", "2026-1", "2026", "november", "2026-11-22", "2026-11%20"]
    {
        let answer = world.get(&format!("/v1/bills?month={malformed}"), &[&token]);
        assert_eq!(answer.status, 400, "{malformed}");
        assert!(answer.body.contains("write it as 2026-11"), "{}", answer.body);
    }
    let cookie = world.cookie(&owner(50));
    assert!(world.get("/bills", &[&cookie]).body.contains("0.000021"));
    assert!(world.get("/bills.csv", &[&cookie]).body.contains("\"0.000021\",\"EUR\""));
    assert!(!world.get("/devices", &[&cookie]).body.contains("cellar"), "a tenant sees no fleet");
    let other = world.token(&owner(2));
    assert_eq!(world.get("/v1/bills", &[&other]).json()["items"], Value::Array(vec![]));
}

#[test]
fn forged_and_foreign_receipts_are_refused() {
    let mut world = World::with_fleet();
    let mut changed = receipt(10, 1, 1, 0, NO_RECEIPT, 5);
    let at = changed.len() / 2;
    changed[at] ^= 1;
    assert_eq!(world.hand_in(vec![changed]), Err(HubRefusal::Signature));
    assert_eq!(world.hand_in(vec![vec![0; 900]]), Err(HubRefusal::Signature));
    let unlisted = receipt(99, 1, 1, 0, NO_RECEIPT, 5);
    assert_eq!(world.hand_in(vec![unlisted]), Err(HubRefusal::UnknownDevice));
    let of_another_owner = receipt(12, 1, 1, 0, NO_RECEIPT, 5);
    assert_eq!(world.hand_in(vec![of_another_owner]), Err(HubRefusal::UnknownDevice));
    let token = world.token(&owner(1));
    assert_eq!(world.get("/v1/receipts", &[&token]).json()["items"], Value::Array(vec![]));
}

#[test]
fn gap_and_fork_of_a_chain_raise_an_alarm() {
    let mut world = World::with_fleet();
    let first = receipt(10, 1, 1, 0, NO_RECEIPT, 1);
    let third = receipt(10, 1, 1, 2, Digest([9; 32]), 1);
    world.hand_in(vec![first.clone(), third]).unwrap();
    let token = world.token(&owner(1));
    let alarms =
        |world: &World| world.get("/v1/alarms?sort=alarm", &[&token]).json()["items"].clone();
    assert_eq!(alarms(&world)[0]["alarm"], "missing");
    assert_eq!(alarms(&world)[0]["number"], 2);
    let second = receipt(10, 1, 1, 1, digest_of_receipt(&first), 1);
    world.hand_in(vec![second]).unwrap();
    assert_eq!(alarms(&world)[0]["alarm"], "broken", "the third follows another second");
    let again = receipt(10, 1, 1, 0, NO_RECEIPT, 7);
    world.hand_in(vec![again]).unwrap();
    assert_eq!(alarms(&world)[1]["alarm"], "fork");
    let audit = world.get("/v1/audit?q=second", &[&token]).json();
    assert_eq!(audit["items"][0]["action"], "second receipt of a number");
}

#[test]
fn lists_are_paged_sorted_and_exported_and_an_unchanged_one_is_not_sent_again() {
    let mut world = World::new();
    for number in 10..17 {
        world.list(1, number, &format!("device-{number}"));
    }
    let token = world.token(&owner(1));
    let page = world.get("/v1/devices?limit=4&sort=-device", &[&token]).json();
    assert_eq!(page["items"][0]["device"], "device-16");
    assert_eq!(page["next"]["skip"], 4);
    let page = world.get("/v1/devices?limit=4&sort=-device&skip=4", &[&token]).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    assert_eq!((&page["items"][2]["device"], &page["next"]), (&"device-10".into(), &Value::Null));
    assert_eq!(world.get("/v1/devices?limit=0", &[&token]).status, 400);
    assert_eq!(world.get("/v1/devices?limit=1001", &[&token]).status, 400);
    let reply = world.get("/v1/devices", &[&token]);
    let known = format!("if-none-match: {}", reply.header("etag").unwrap());
    assert_eq!(world.get("/v1/devices", &[&token, &known]).status, 304);
    world.list(1, 20, "device-20");
    assert_eq!(world.get("/v1/devices", &[&token, &known]).status, 200);
    let csv = world.get("/devices.csv?q=device-1", &[&token]).body;
    assert!(csv.starts_with("\"device\",\"state\"") && csv.lines().count() == 8, "{csv}");
    for number in 100..250 {
        world.list(1, number, &format!("shed-{number}"));
    }
    let lines = |address: &str| world.get(address, &[&token]).body.lines().count();
    assert_eq!(lines("/devices.csv?q=shed"), 151, "a file has all of them");
    assert_eq!(lines("/devices.csv?q=shed&limit=20"), 21);
}

#[test]
fn every_path_of_the_openapi_document_answers_and_every_list_is_in_it() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let document = world.get("/v1/openapi.json", &[]).json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    // Paths with an id in them are driven by the tests of rollouts.
    for path in paths.keys().filter(|path| !path.contains('{')) {
        if paths[path].get("get").is_none() {
            continue;
        }
        assert_eq!(world.get(path, &[&token]).status, 200, "{path}");
    }
    for name in ["devices", "machines", "receipts", "alarms", "audit", "passes", "tenants", "bills"]
    {
        assert!(paths.contains_key(&format!("/v1/{name}")), "{name}");
    }
    let items = &document["paths"]["/v1/devices"]["get"]["responses"]["200"]["content"];
    let known = &items["application/json"]["schema"]["properties"]["items"]["items"]["properties"];
    let device = &world.get("/v1/devices", &[&token]).json()["items"][0];
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(device), names(known), "an item has the properties that are described");
}

#[test]
fn metrics_count_the_fleet_of_the_key() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let text = world.get("/metrics", &[&token]).body;
    assert!(
        text.contains("\ntenure_devices 2\n") && text.contains("\ntenure_machines 2\n"),
        "{text}"
    );
}

/// Opens a connection to the pages from an address of this computer.
fn connect(world: &World, from: [u8; 4]) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&world.pages.into()).unwrap();
    TcpStream::from(socket)
}

/// Asks for a page that anybody gets, and reads the answer whole, so that the connection may be used again.
fn ask_for_style(stream: &mut TcpStream) -> std::io::Result<String> {
    // A connection that is closed may be reset, too.
    let _ = stream.write_all(b"GET /style.css HTTP/1.1\r\nhost: hub\r\n\r\n");
    read_answer(stream)
}

fn read_answer(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split_once("content-length: ").expect("a length").1;
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    stream.read_exact(&mut vec![0; length])?;
    Ok(head)
}

#[test]
fn host_that_takes_all_its_connections_keeps_no_other_host_out() {
    let world = World::for_many_hosts();
    let mut held: Vec<TcpStream> = (0..64).map(|_| connect(&world, [127, 0, 0, 1])).collect();
    assert!(held.iter_mut().all(|stream| ask_for_style(stream).is_ok()));
    for _ in 0..300 {
        let further = ask_for_style(&mut connect(&world, [127, 0, 0, 1]));
        assert!(further.is_err(), "the host has no room");
    }
    let answer = ask_for_style(&mut connect(&world, [127, 0, 0, 2])).unwrap();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
}

#[test]
fn hosts_that_take_all_that_they_can_leave_connections_for_others() {
    let world = World::for_many_hosts();
    let mut held: Vec<TcpStream> = Vec::new();
    for host in 1..=4 {
        for _ in 0..64 {
            let mut stream = connect(&world, [127, 0, 0, host]);
            if ask_for_style(&mut stream).is_ok() {
                held.push(stream);
            }
        }
    }
    assert_eq!(held.len(), 64 + 64 + 64 + 32, "as many as are free, each");
    for host in 5..=9 {
        let answer = ask_for_style(&mut connect(&world, [127, 0, 0, host])).unwrap();
        assert!(answer.starts_with("http/1.1 200"), "{answer}");
    }
}

#[test]
fn host_beyond_those_of_the_hub_gets_the_place_of_a_connection_that_only_waits() {
    let world = World::for_many_hosts();
    let mut held: Vec<TcpStream> = Vec::new();
    for host in 0..=255 {
        let mut stream = connect(&world, [127, 0, 1, host]);
        ask_for_style(&mut stream).unwrap();
        held.push(stream);
    }
    let answer = ask_for_style(&mut connect(&world, [127, 0, 0, 5])).unwrap();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    let gone = held.iter_mut().map(ask_for_style).filter(Result::is_err).count();
    assert_eq!(gone, 1, "the one that has waited longest");
}

#[test]
fn openapi_document_passes_a_published_validator() {
    let Some(modules) = tools::installed() else { return };
    let world = World::new();
    let document = world.get("/v1/openapi.json", &[]).body;
    // The validator finds a mistake, so that its silence means something.
    let mut broken: Value = serde_json::from_str(&document).unwrap();
    broken["paths"]["/v1/devices"]["get"]["responses"] = "none".into();
    for (text, is_valid) in [(document, true), (broken.to_string(), false)] {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut validator = std::process::Command::new(modules.join(".bin/validate-api"));
        let output = validator.arg(file.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let found_valid = output.status.success() && said.contains("\"valid\": true");
        assert_eq!(found_valid, is_valid, "{said}");
    }
}
