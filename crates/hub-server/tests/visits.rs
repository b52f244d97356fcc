//! Pages of machines behind the hub, over real sockets: who is let in as whom, and what a page, another site and a visitor
//! can do to the hub.

use super::world;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_wire::NoResult;
use tenure_wire::hub::Scope;

use world::{Caller, World, owner};

const PAGE: &str = "<!doctype html><h1>21.5</h1>";

/// A hub whose attic has a panel for its owner, a door for everybody, and other machines.
fn world() -> World {
    with_machines(World::with_fleet())
}

fn with_machines(world: World) -> World {
    world.house.put("panel@attic", false, |_| Ok(PAGE.into()));
    world.house.put("door@attic", true, |_| Ok(PAGE.into()));
    world
}

/// Where a page leads its visitor, who isn't signed in if there is no cookie.
fn led(world: &World, path: &str, headers: &[&str]) -> String {
    let reply = world.get(path, headers);
    assert_eq!(reply.status, 303, "{path}: {}", reply.body);
    reply.header("location").unwrap().to_string()
}

/// The path of a page, with the ticket of who has this cookie.
fn ticketed(world: &World, machine: &str, cookie: &str) -> String {
    led(world, &format!("/m/{machine}/"), &[cookie])
}

/// What a browser adds to the requests of a machine's page, whose origin is nobody's.
const OF_PAGE: [&str; 3] = ["sec-fetch-site: cross-site", "sec-fetch-mode: cors", "origin: null"];

#[test]
fn owner_who_is_signed_in_gets_the_page_by_a_ticket_and_its_parts_without_a_cookie() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let page = led(&world, "/m/panel@attic?a=b", &[&cookie]);
    assert!(page.starts_with("/m/panel@attic/~s") && page.ends_with("/?a=b"), "{page}");
    let reply = world.get(&page, &[&cookie, "sec-fetch-site: none", "sec-fetch-dest: document"]);
    assert_eq!((reply.status, reply.body.as_str()), (200, PAGE));
    let below = page.strip_suffix("?a=b").unwrap();
    let part = world.get(&format!("{below}a%20b/style.css?v=1"), &OF_PAGE);
    assert_eq!((part.status, part.header("access-control-allow-origin")), (200, Some("*")));
    let set = world.request("POST", &format!("{below}degrees"), &OF_PAGE, "degrees=19");
    assert_eq!(set.status, 200, "{}", set.body);
    let asked = world.house.asked();
    let line = |at: usize| asked[at].1.lines().next().unwrap().to_string();
    assert_eq!(
        [line(0), line(1), line(2)],
        ["GET /?a=b HTTP/1.1", "GET /a%20b/style.css?v=1 HTTP/1.1", "POST /degrees HTTP/1.1"]
    );
    assert!(asked[2].1.ends_with("\r\n\r\ndegrees=19"), "{}", asked[2].1);
    assert!(asked.iter().all(|(caller, _)| *caller == Caller::Owner));
}

#[test]
fn machine_is_told_nothing_that_a_browser_or_a_program_keeps_for_the_hub() {
    let mut world = world();
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    let page = ticketed(&world, "panel@attic", &cookie);
    world.get(&page, &[&cookie, &token, "origin: null", "accept: text/html"]);
    let (_, asked) = world.house.asked().remove(0);
    let told: Vec<&str> =
        asked.lines().skip(1).filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(told, ["host", "accept", "range", ""]);
}

#[test]
fn page_on_the_hub_s_host_is_sandboxed_and_its_fields_say_nothing_for_the_hub() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    world.house.put("evil@attic", true, |_| {
        let fields = "set-cookie: tenure_session=mine; Path=/\r\nclear-site-data: \"*\"\r\n\
                      content-security-policy: sandbox allow-same-origin allow-scripts\r\n\
                      x: a\r\nset-cookie: b=c\r\nlocation: /devices\r\n";
        Ok(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{PAGE}").into())
    });
    let page = ticketed(&world, "evil@attic", &cookie);
    let reply = world.get(&page, &[]);
    assert_eq!(reply.status, 200);
    for name in ["set-cookie", "clear-site-data", "x"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    let policies: Vec<&str> =
        reply.headers.lines().filter(|line| line.starts_with("content-security-policy")).collect();
    assert_eq!(
        policies,
        [
            "content-security-policy: sandbox allow-scripts allow-forms allow-downloads allow-modals; \
          frame-ancestors 'none'"
        ]
    );
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    let location = reply.header("location").unwrap();
    assert_eq!(location, format!("{page}devices"));
    // Errors of the hub's about a page are confined, too.
    world
        .house
        .put("evil@attic", true, |_| Ok("HTTP/1.1 200 OK\r\na: b\rset-cookie: c=d\r\n\r\n".into()));
    let split = world.get(&page, &[]);
    assert_eq!((split.status, split.header("set-cookie")), (502, None), "{}", split.headers);
    assert!(split.headers.contains("\ncontent-security-policy: sandbox allow-scripts"));
}

#[test]
fn ticket_opens_one_machine_s_page_and_nothing_once_its_owner_signed_out() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let page = ticketed(&world, "panel@attic", &cookie);
    assert_eq!(page, ticketed(&world, "panel@attic", &cookie), "a browser may keep what it loaded");
    let ticket = page.strip_prefix("/m/panel@attic/").unwrap();
    for other in [format!("/m/door@attic/{ticket}"), format!("/m/panel@cellar/{ticket}")] {
        let reply = world.get(&other, &OF_PAGE);
        assert_eq!(reply.status, 403, "{other}");
    }
    // A browser that shows the page is led to a new ticket, or to sign in.
    let forged = page.replace("/~s", "/~s1");
    assert_eq!(led(&world, &format!("{forged}x?y"), &[&cookie]), "/m/panel@attic/x?y");
    let own = [cookie.as_str(), "sec-fetch-site: same-origin"];
    assert_eq!(world.request("POST", "/sign-out", &own, "").status, 303);
    assert_eq!(world.get(&page, &OF_PAGE).status, 403);
    assert_eq!(world.request("POST", &page, &OF_PAGE, "").status, 403);
    assert_eq!(led(&world, &page, &[]), "/m/panel@attic/");
    assert_eq!(led(&world, "/m/panel@attic/", &[]), "/sign-in");
    assert_eq!(world.house.asked().len(), 0);
}

#[test]
fn pass_of_another_browser_that_has_the_number_of_one_that_ended_opens_nothing() {
    let mut world = world();
    let first = world.cookie(&owner(1));
    let page = ticketed(&world, "panel@attic", &first);
    world.write_by_hand("UPDATE passes SET secret_hash = zeroblob(32)");
    assert_eq!(world.get(&page, &OF_PAGE).status, 403);
    assert_eq!(world.house.asked().len(), 0);
}

#[test]
fn other_owner_and_whoever_is_not_signed_in_are_called_for_as_guests_or_not_at_all() {
    let mut world = world();
    let other = world.cookie(&owner(2));
    let page = ticketed(&world, "panel@attic", &other);
    assert_eq!(world.get(&page, &[]).status, 403, "its lease lets the owner in alone");
    assert_eq!(world.get(&ticketed(&world, "door@attic", &other), &[]).status, 200);
    assert_eq!(world.house.asked().len(), 1);
    assert_eq!(world.house.asked()[0].0, Caller::Guest);
    for path in ["/m/panel@attic", "/m/door@attic/", "/m/nothing@nowhere/x"] {
        assert_eq!(led(&world, path, &[]), "/sign-in", "{path}");
    }
    // Tokens of programs open the API, and no pages.
    let token = world.token_for(&owner(1), Scope::ALL.to_vec());
    assert_eq!(led(&world, "/m/panel@attic/", &[&token]), "/sign-in");
}

#[test]
fn guests_get_the_pages_of_machines_that_let_everybody_in_where_the_hub_shows_them() {
    let world = with_machines(World::for_guests().and_fleet());
    let door =
        led(&world, "/m/door@attic", &["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"]);
    assert!(door.starts_with("/m/door@attic/~g"), "{door}");
    assert_eq!(world.get(&door, &[]).status, 200);
    assert_eq!(world.request("POST", &door, &OF_PAGE, "open").status, 200);
    let panel = led(&world, "/m/panel@attic/", &[]);
    assert_eq!(world.get(&panel, &[]).status, 403);
    assert!(world.house.asked().iter().all(|(caller, _)| *caller == Caller::Guest));
    // A ticket is for a day, and not made up.
    let forged = door.replace("/~g", "/~g9");
    assert_eq!(world.get(&forged, &OF_PAGE).status, 403);
}

#[test]
fn name_that_somebody_leads_to_the_hub_shows_no_page_to_a_stranger() {
    let world = with_machines(World::for_guests().and_fleet());
    let door = led(&world, "/m/door@attic/", &[]);
    for (host, status) in
        [("evil.example", 403), ("door.hub", 403), ("hub:80", 200), ("127.0.0.1", 200)]
    {
        let head = format!("host: {host}\r\nconnection: close\r\nsec-fetch-mode: cors\r\n\r\n");
        let reply = world.send(&format!("GET {door} HTTP/1.1\r\n{head}"));
        assert_eq!(reply.status, status, "{host}");
        let opened = world.send(&format!("GET /m/door@attic/ HTTP/1.1\r\n{head}"));
        let led = opened.header("location").unwrap();
        assert_eq!(led.contains("/~g"), status == 200, "{host}: {led}");
    }
}

#[test]
fn change_that_another_site_asks_for_has_no_ticket_and_is_refused() {
    let mut world = with_machines(World::for_guests().and_fleet());
    let cookie = world.cookie(&owner(1));
    for headers in [&OF_PAGE[..], &["origin: https://evil.example"], &[cookie.as_str()], &[]] {
        let reply = world.request("POST", "/m/door@attic/open", headers, "");
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    assert_eq!(world.house.asked().len(), 0);
}

#[test]
fn page_of_a_machine_does_nothing_at_the_hub_in_its_visitor_s_name() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    // A browser that sent the cookie all the same.
    let of_page = [&OF_PAGE[..], &[cookie.as_str()]].concat();
    for path in ["/v1/devices", "/v1/devices/attic/log", "/metrics", "/v1/bills", "/v2/"] {
        assert_eq!(world.get(path, &of_page).status, 401, "{path}");
    }
    for path in ["/devices", "/devices.csv", "/rollouts"] {
        assert_eq!(led(&world, path, &of_page), "/sign-in", "{path}");
    }
    for path in ["/sign-out", "/passes/1/revoke", "/v1/receipts", "/v1/rollouts"] {
        assert_eq!(world.request("POST", path, &of_page, "").status, 403, "{path}");
    }
    let reply = world.get("/m/panel@attic/", &of_page);
    assert!(reply.status == 200 && reply.body.contains("Another page led here"), "{}", reply.body);
    assert_eq!(world.house.asked().len(), 0);
    assert_eq!(world.get("/v1/devices", &[&cookie]).status, 200, "still signed in");
}

#[test]
fn hub_s_own_page_uses_nothing_of_a_machine_s() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let page = ticketed(&world, "panel@attic", &cookie);
    for destination in ["script", "style", "image", "iframe", "empty", "worker"] {
        let destination = format!("sec-fetch-dest: {destination}");
        let reply = world.get(&page, &[&cookie, "sec-fetch-site: same-origin", &destination]);
        assert_eq!(reply.status, 403, "{destination}");
    }
    assert_eq!(world.house.asked().len(), 0);
    let shown = world.get(&page, &["sec-fetch-site: same-origin", "sec-fetch-dest: document"]);
    assert_eq!(shown.status, 200);
}

#[test]
fn page_may_ask_its_machine_for_more_than_a_form_could() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let page = ticketed(&world, "panel@attic", &cookie);
    let asks = [&OF_PAGE[..], &["access-control-request-method: PUT"]].concat();
    let reply = world.request("OPTIONS", &page, &asks, "");
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some("*")));
    assert!(reply.header("access-control-allow-methods").unwrap().contains("PUT"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    assert_eq!(world.house.asked().len(), 0, "the machine isn't asked");
    assert_eq!(world.request("PUT", &page, &OF_PAGE, "{}").status, 200);
}

#[test]
fn paths_that_lead_out_of_a_page_and_names_of_nobody_find_nothing() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let page = ticketed(&world, "panel@attic", &cookie);
    for path in [
        "/m",
        "/m/",
        "/m/panel",
        "/m/panel@",
        "/m/@attic",
        "/m/%2e%2e/devices",
        "/m/panel@attic/../../devices",
        "PAGE../~x",
        "PAGE%2e%2e/x",
        "PAGE..%2fx",
        "PAGEa/..%5cx",
    ] {
        let path = path.replace("PAGE", &page);
        assert_eq!(world.get(&path, &[&cookie]).status, 404, "{path}");
    }
    let nobody = ticketed(&world, "window@attic", &cookie);
    let reply = world.get(&nobody, &[]);
    assert!(
        reply.status == 404 && reply.body.contains("no machine of that name"),
        "{}",
        reply.body
    );
    world.house.put("away@attic", true, |_| Err(NoResult::Unreachable));
    let away = world.get(&ticketed(&world, "away@attic", &cookie), &[]);
    assert!(away.status == 502 && away.header("retry-after").is_some(), "{}", away.body);
    let encoded = world.get(&format!("{page}a%2Fb%00"), &[]);
    assert_eq!(encoded.status, 200);
    assert!(world.house.asked()[1].1.starts_with("GET /a%2Fb%00 HTTP/1.1\r\n"), "as it was sent");
}

#[test]
fn answer_or_request_that_is_too_long_is_told_so() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    world.house.put("huge@attic", true, |_| {
        Ok("HTTP/1.1 206 \r\ncontent-range: bytes 0-0/99999999\r\n\r\nx".into())
    });
    let huge = world.get(&ticketed(&world, "huge@attic", &cookie), &[]);
    assert_eq!(huge.status, 502, "{}", huge.body);
    let page = ticketed(&world, "panel@attic", &cookie);
    assert_eq!(world.request("POST", &page, &[], &"x".repeat(9_000)).status, 413);
    assert_eq!(world.house.asked().len(), 2);
}

#[test]
fn stream_ends_once_its_owner_signed_out() {
    let mut world = world();
    let cookie = world.cookie(&owner(1));
    let values = AtomicU32::new(0);
    world.house.put("meter@attic", false, move |_| {
        let value = values.fetch_add(1, Ordering::Relaxed);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        Ok(format!("{head}retry: 1\ndata: {value}\n\n").into())
    });
    let page = ticketed(&world, "meter@attic", &cookie);
    let mut stream = world.connect();
    stream.set_read_timeout(Some(tenure_testbed::patience())).unwrap();
    let of_page = OF_PAGE.join("\r\n");
    write!(stream, "GET {page} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{of_page}\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    for field in ["content-type: text/event-stream", "access-control-allow-origin: *"] {
        assert!(head.iter().any(|line| line == field), "{head:?}");
    }
    assert!(lines.any(|line| line == "data: 2"));
    let own = [cookie.as_str(), "sec-fetch-site: same-origin"];
    assert_eq!(world.request("POST", "/sign-out", &own, "").status, 303);
    assert!(lines.last().is_some_and(|line| line != "data: 2"), "it ends, after a while");
}

/// Asks for `path` so many times at once, and reads nothing yet.
fn ask(world: &World, path: &str, times: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\n\r\n");
    let ask = |_| {
        let mut stream = world.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    (0..times).map(ask).collect()
}

/// Waits until one of those who asked has an answer, and returns its status.
fn first_status(asking: &mut [TcpStream]) -> String {
    tenure_testbed::wait_until(|| {
        let answered = asking.iter_mut().find_map(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let mut start = [0; 12];
            let is_read = stream.read(&mut start).is_ok_and(|length| length == 12);
            is_read.then(|| String::from_utf8_lossy(&start[9..]).into_owned())
        });
        answered.ok_or("nobody has an answer")
    })
}

#[test]
fn visitor_whose_requests_are_never_answered_takes_no_turn_of_another_s() {
    let mut world = world();
    let (mine, others) = (world.cookie(&owner(1)), world.cookie(&owner(2)));
    let page = ticketed(&world, "door@attic", &others);
    // Sixteen are a visitor's at once; who comes after them is told so.
    let mut asking = ask(&world, &format!("{page}never"), 17);
    assert_eq!(first_status(&mut asking), "429");
    assert_eq!(world.get(&ticketed(&world, "door@attic", &mine), &[]).status, 200);
    let of_other = |(caller, _): &&(Caller, String)| *caller == Caller::Guest;
    assert_eq!(
        world.house.asked().iter().filter(of_other).count(),
        2,
        "the others wait: a visitor has a part of a machine's turns"
    );
}

#[test]
fn crowd_of_guests_at_a_machine_takes_no_turn_of_its_owner_s() {
    let mut world = with_machines(World::for_guests().and_fleet());
    let cookie = world.cookie(&owner(1));
    let door = led(&world, "/m/door@attic/", &[]);
    let mut asking = ask(&world, &format!("{door}never"), 17);
    assert_eq!(first_status(&mut asking), "429");
    let reply = world.get(&ticketed(&world, "door@attic", &cookie), &[]);
    assert_eq!(reply.status, 200);
    assert_eq!(world.house.asked().last().unwrap().0, Caller::Owner);
}
