//! The layers around all answers: compression, request ids, figures by route, health; and where no route leads.

use super::world;

use std::collections::BTreeSet;

use serde_json::Value;
use tenure_hub::Fullness;

use world::{World, now, owner, package, push};

const GZIP: &str = "accept-encoding: gzip";

#[test]
fn texts_are_compressed_for_clients_that_take_it_and_have_a_weak_tag_then() {
    let mut world = World::with_fleet();
    for number in 20..60 {
        world.list(1, number, &format!("device-{number}"));
    }
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    for (path, pass) in [("/devices", &cookie), ("/v1/devices", &token)] {
        let plain = world.get(path, &[pass]);
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let tag = plain.header("etag").unwrap();
        let packed = world.get(path, &[pass, GZIP]);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(packed.header("vary"), Some("accept-encoding"), "{path}");
        assert_eq!(packed.header("etag"), Some(&*format!("W/{tag}")), "{path}");
        assert!(packed.body.len() < plain.body.len(), "{path}");
        let known = format!("if-none-match: W/{tag}");
        assert_eq!(world.get(path, &[pass, GZIP, &known]).status, 304, "{path}");
    }
    // A file is sent as it is read, before its digest can be known.
    let file = world.get("/devices.csv", &[&cookie, GZIP]);
    assert_eq!((file.header("content-encoding"), file.header("etag")), (Some("gzip"), None));
    assert_eq!(world.get("/v1/devices", &["accept-encoding: br"]).header("content-encoding"), None);
}

#[test]
fn packages_and_the_registry_are_sent_as_they_are() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let package = package("1.0.0");
    assert_eq!(push(&world, &token, "house/thermostat", &package).status, 201);
    let packages = world.get("/v1/packages", &[&token]).json();
    let own =
        packages["items"][0]["package_digest"].as_str().map(|own| format!("/v1/packages/{own}"));
    let blob = format!("/v2/house/thermostat/blobs/{}", world::digest(&package));
    for path in [blob].into_iter().chain(own) {
        let reply = world.get(&path, &[&token, GZIP]);
        assert_eq!((reply.status, reply.header("content-encoding")), (200, None), "{path}");
        assert_eq!(reply.header("content-length"), Some(&*package.len().to_string()), "{path}");
    }
}

#[test]
fn answers_have_an_id_of_the_hub_s_or_of_the_proxy_s() {
    let id = "x-request-id: from-the-client";
    let direct = World::new();
    let ids: BTreeSet<String> = ["/", "/v1/devices", "/nothing", "/m/panel@attic", "/v2/"]
        .into_iter()
        .map(|path| direct.get(path, &[id]).header("x-request-id").unwrap().to_string())
        .collect();
    assert_eq!(ids.len(), 5, "each has one of its own");
    assert!(!ids.contains("from-the-client"));
    let behind = World::reached(true);
    assert_eq!(behind.get("/", &[id]).header("x-request-id"), Some("from-the-client"));
    let forged = behind.get("/", &["x-request-id: a b"]);
    assert_ne!(forged.header("x-request-id"), Some("a b"));
}

#[test]
fn figures_of_requests_are_by_route_and_no_client_makes_series_without_end() {
    let mut world = World::with_fleet();
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    for path in ["/devices/attic", "/devices/cellar", "/devices/nowhere"] {
        world.get(path, &[&cookie]);
    }
    for number in 0..20 {
        world.get(&format!("/made/up/{number}"), &[]);
        world.request(&format!("MADE{number}"), "/devices", &[&token], "");
        world.get(&format!("/m/made-up@attic{number}/"), &[]);
    }
    let text = world.get("/metrics", &[&token]).body;
    let count = |labels: &str| {
        let name = format!("tenure_http_request_seconds_count{{{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_string)
    };
    let of = |method: &str, route: &str, status: &str| {
        count(&format!("method=\"{method}\",route=\"{route}\",status=\"{status}\""))
    };
    assert_eq!(of("GET", "/devices/{device}", "2xx").as_deref(), Some("2"), "{text}");
    assert_eq!(of("GET", "/devices/{device}", "4xx").as_deref(), Some("1"), "{text}");
    assert_eq!(of("GET", "none", "4xx").as_deref(), Some("20"), "{text}");
    assert_eq!(of("other", "/devices", "4xx").as_deref(), Some("20"), "{text}");
    assert_eq!(of("GET", "/m/{*page}", "3xx").as_deref(), Some("20"), "{text}");
    assert!(!text.contains("made") && !text.contains("attic"), "{text}");
    assert!(text.contains("tenure_http_request_seconds_bucket{method=\"GET\",route=\"/devices/{device}\",status=\"2xx\",le=\"+Inf\"} 2"), "{text}");
    assert!(text.contains("\ntenure_http_requests 1\n"), "the one that asks: {text}");
    assert!(text.contains("\ntenure_hub_database_seconds_count{outcome=\"done\"} "), "{text}");
}

#[test]
fn hub_is_alive_and_is_ready_while_its_directory_hears() {
    let world = World::new();
    assert_eq!(
        (world.get("/health", &[]).status, &*world.get("/health", &[]).body),
        (200, "alive\n")
    );
    let deaf = world.get("/ready", &[]);
    assert_eq!((deaf.status, deaf.header("retry-after")), (503, Some("5")));
    assert!(deaf.body.contains("the directory doesn't listen yet"), "{}", deaf.body);
    world.database.running().hear(now());
    assert_eq!(
        (world.get("/ready", &[]).status, &*world.get("/ready", &[]).body),
        (200, "ready\n")
    );
    world.database.running().hear(now() - 60);
    let deaf = world.get("/ready", &[]);
    assert!(deaf.status == 503 && deaf.body.contains("no device for 6"), "{}", deaf.body);
}

#[test]
fn page_of_devices_and_figures_say_how_many_of_how_many_are_listed_and_a_full_hub_is_ready() {
    let mut world = World::with_fleet();
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    let running = world.database.running();
    for (used, is_full) in [(3, false), (4, true), (5, true)] {
        running.tell_fullness(&[Fullness { table: "devices", used, most: 4, times_full: 0 }]);
        running.hear(now());
        let ready = world.get("/ready", &[]);
        assert_eq!((ready.status, &*ready.body), (200, "ready\n"), "anybody may read it");
        for path in ["/", "/devices"] {
            let page = world.get(path, &[&cookie]).body;
            let expected = format!("The hub lists {used} of 4 devices at most, of all owners.");
            assert!(page.contains(&expected), "{page}");
            assert_eq!(page.contains("It takes no new one."), is_full, "{page}");
        }
        assert!(!world.get("/machines", &[&cookie]).body.contains("of 4 devices"));
        let figures = world.get("/metrics", &[&token]).body;
        for (name, value) in [("used", used), ("most", 4)] {
            let line = format!("\ntenure_hub_table_{name}{{table=\"devices\"}} {value}\n");
            assert!(figures.contains(&line), "{line}: {figures}");
        }
    }
}

#[test]
fn where_no_route_leads_a_page_or_the_api_says_so_and_segments_of_no_kind_lead_nowhere() {
    let mut world = World::with_fleet();
    let (cookie, token) = (world.cookie(&owner(1)), world.token(&owner(1)));
    let html = Some("text/html; charset=utf-8");
    let (problem, registry) = (Some("application/problem+json"), Some("application/json"));
    for (method, path, status, kind) in [
        ("GET", "/nothing", 404, html),
        ("GET", "/nothing.csv", 404, html),
        ("GET", "/devices/%ff", 404, html),
        ("GET", "/rollouts/first", 404, html),
        ("POST", "/rollouts/first/pause", 404, html),
        ("POST", "/rollouts/1/jump", 404, html),
        ("POST", "/passes/mine/revoke", 404, html),
        ("POST", "/devices", 404, html),
        ("GET", "/v1/a/b", 404, html),
        ("GET", "/v1/nothing", 404, problem),
        ("HEAD", "/v1/nothing", 404, problem),
        ("GET", "/v1/revocations", 404, problem),
        ("GET", "/v1/rollouts/first", 404, problem),
        ("GET", "/v1/rollouts/1/a/b", 404, problem),
        ("DELETE", "/v1/rollouts/1", 404, problem),
        ("POST", "/v1/rollouts/1/jump", 404, problem),
        ("PATCH", "/v1/devices", 405, None),
        ("GET", "/v2/a", 400, registry),
        ("DELETE", "/v1/packages/00", 403, problem),
    ] {
        let own = [cookie.as_str(), "sec-fetch-site: same-origin"];
        let reply = match path.starts_with("/v") {
            true => world.request(method, path, &[&token], ""),
            false => world.request(method, path, &own, ""),
        };
        assert_eq!((reply.status, reply.header("content-type")), (status, kind), "{method} {path}");
    }
    for path in ["/v1/rollouts/1/jump", "/v1/rollouts/1", "/v2/a", "/v1/packages/00"] {
        assert_eq!(world.get(path, &[]).status, 401, "{path}: who has no pass learns nothing");
    }
}

#[test]
fn body_that_is_too_long_is_refused_in_the_api_s_own_words() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let long = "0".repeat(256 * 1024 + 1);
    let chunked = format!(
        "POST /v1/receipts HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{token}\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    for reply in [
        world.request("POST", "/v1/receipts", &[&token], &long),
        world.request("POST", "/v1/rollouts", &[&token], &long),
        world.send(&chunked),
    ] {
        let told: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!((reply.status, &told["status"]), (413, &413.into()));
        assert_eq!(told["detail"], "the body is longer than the 262144 bytes that are taken here");
    }
}

#[test]
fn operations_of_the_openapi_document_have_names_of_their_own_and_every_reference_leads_somewhere()
{
    let document = World::new().get("/v1/openapi.json", &[]).json();
    let mut names = BTreeSet::new();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
    for operation in operations {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{name} is there twice");
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
    }
    let of_rollouts = paths.keys().filter(|path| path.starts_with("/v1/rollouts/"));
    assert_eq!(of_rollouts.count(), 8);
    let mut left = vec![&document];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => left.extend(members.values()),
            Value::Array(items) => left.extend(items),
            Value::String(text) if text.starts_with("#/") => {
                assert!(document.pointer(&text[1..]).is_some(), "{text}");
            }
            _ => {}
        }
    }
}
