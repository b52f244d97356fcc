//! The hub's pages in a real browser: a person signs in, looks, clicks and types, by keyboard and on a phone.
//!
//! The tests leave a picture of each page in `target/pages`.

#[path = "../tools/mod.rs"]
mod tools;
#[path = "../world/mod.rs"]
mod world;

mod fleet;
mod webdriver;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tenure_testbed::wait_until;
use webdriver::{Browser, has_browser};
use world::watching::{rule, watching};
use world::{World, now, owner};

/// The pages that an owner comes to.
const PAGES: [&str; 16] = [
    "/devices",
    "/devices/attic",
    "/machines",
    "/alarms",
    "/faults",
    "/machine-use",
    "/packages",
    "/rollouts",
    "/rollouts/1",
    "/receipts",
    "/bills",
    "/tenants",
    "/audit",
    "/people",
    "/passes",
    "/nothing",
];
const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";

/// A browser that is signed in as the owner.
fn signed_in(world: &mut World) -> Browser {
    let browser = Browser::start();
    // Chromium drops a page that it is loading where an interface of the computer comes or goes, as in other tests.
    wait_until(|| {
        let code = world.pass(&owner(1), tenure_wire::hub::Access::Page).unwrap().secret;
        browser.go(&address(world, &format!("/sign-in?code={code}")));
        let shown = browser.text();
        if shown.contains("Devices") { Ok(()) } else { Err(format!("no `Devices`:\n{shown}")) }
    });
    browser
}

fn address(world: &World, path: &str) -> String {
    format!("http://{}{path}", world.pages)
}

/// The browser asked nobody but the hub, and no page complained.
fn is_clean(world: &World, browser: &Browser) {
    let own = address(world, "/");
    let is_foreign = |url: &String| {
        !url.starts_with(&own) && !url.starts_with("data:") && !url.starts_with("chrome")
    };
    let foreign: Vec<String> = browser.requests().into_iter().filter(is_foreign).collect();
    assert_eq!(foreign, Vec::<String>::new(), "requests to others");
    // The browser itself says that a page was not found.
    let console: Vec<String> =
        browser.console().into_iter().filter(|line| !line.contains("/nothing")).collect();
    assert_eq!(console, Vec::<String>::new(), "the console");
}

#[test]
fn owner_signs_in_watches_a_fault_arrive_reads_a_bill_and_signs_out() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let browser = signed_in(&mut world);
    browser.click("attic");
    browser.wait_for("Reports");
    assert!(!browser.text().contains("a fault that comes later"));
    fleet::fault(&mut world, "a fault that comes later");
    browser.wait_for("a fault that comes later");
    browser.click("Bills");
    browser.wait_for("EUR");
    assert!(browser.text().contains("0.000021"), "{}", browser.text());
    is_clean(&world, &browser);
    browser.click("Sign out");
    browser.wait_for("tenure login");
    browser.go(&address(&world, "/devices"));
    assert!(browser.url().ends_with("/sign-in"), "{}", browser.url());
}

/// The attic asks until it is told that the browser watches its log.
fn is_asked(world: &mut World, browser: &Browser) {
    let asks = |_| fleet::log(world, Vec::new()).is_some() || browser.text().is_empty();
    assert!((0..2_000).any(asks), "nobody watches the log");
}

#[test]
fn owner_watches_the_log_of_a_device_grow_until_the_pass_is_over() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let browser = signed_in(&mut world);
    browser.click("attic");
    browser.wait_for("Watch the log");
    assert_eq!(fleet::log(&mut world, Vec::new()), None, "a page alone asks for no line");
    browser.click("Watch the log");
    browser.wait_for("Waiting for the device");
    is_asked(&mut world, &browser);
    let script = "<img src=x onerror=document.title='broken-in'>";
    fleet::log(&mut world, vec![fleet::line(0, "warm again"), fleet::line(1, script)]);
    browser.wait_for(&format!("thermostat info: {script}"));
    assert!(browser.text().contains("2026-11-18T11:06:40Z thermostat info: warm again"));
    // The page changes around the log, which goes on.
    fleet::fault(&mut world, "a fault that comes later");
    browser.wait_for("a fault that comes later");
    fleet::log(&mut world, vec![fleet::line(2, "the third line")]);
    browser.wait_for("the third line");
    assert!(browser.text().contains("warm again"), "{}", browser.text());
    assert_ne!(browser.execute("return document.title"), "broken-in");
    browser.click("Stop");
    browser.wait_for("Stopped.");
    browser.click("Watch the log");
    // The device says it as long as it is asked: the watch before may end late, and what it had is forgotten then.
    let says = |_| {
        fleet::log(&mut world, vec![fleet::line(3, "once more")]);
        browser.text().contains("once more")
    };
    assert!((0..2_000).any(says), "{}", browser.text());
    is_clean(&world, &browser);
    world.write_by_hand("DELETE FROM passes");
    // The watch says so, or the page around it leads to the sign-in, whichever asks first.
    let is_out = |_| {
        let text = browser.text();
        text.contains("You are signed out") || text.contains("Type tenure login")
    };
    assert!((0..2_000).any(is_out), "{}", browser.text());
}

#[test]
fn owner_reads_on_the_page_of_a_device_how_to_install_what_was_pushed_last() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let browser = signed_in(&mut world);
    browser.click("attic");
    browser.wait_for("Install a package");
    let shown = "return [...document.querySelectorAll('pre code')].map(one => one.innerText)";
    let commands = browser.execute(shown);
    assert_eq!(
        commands.as_array().unwrap().len(),
        1,
        "the newest of the one repository: {commands}"
    );
    let token = world.token(&owner(1));
    let pushed = world.get("/v1/packages?version=1.1.0", &[&token]).json()["items"][0].clone();
    let digest = pushed["digest"].as_str().unwrap();
    let command = format!(
        "tenure pull thermostat@{digest} --to thermostat.tenure\ntenure install thermostat.tenure --device attic"
    );
    assert_eq!(commands[0], *command);
    // A version that is pushed while the page is open shows on it.
    assert_eq!(world::push(&world, &token, "thermostat", &world::package("1.2.0")).status, 201);
    browser.wait_for("thermostat 1.2.0 from thermostat");
    is_clean(&world, &browser);
}

#[test]
fn person_looks_after_an_alarm_by_keyboard_and_the_page_says_who_does() {
    let Some(modules) = tools::installed().filter(|_| has_browser()) else { return };
    let axe = std::fs::read_to_string(modules.join("axe-core/axe.min.js")).unwrap();
    let mut world = fleet::world();
    world.write_by_hand(
        "UPDATE devices SET labels = 'site=harbour' WHERE name IN ('attic', 'barn')",
    );
    let mut away = rule("away", "silent > 20m");
    away.labels = vec!["site=harbour".parse().unwrap()];
    watching(&world, vec![away]).turn(now() + 2_000).unwrap();
    let browser = signed_in(&mut world);
    browser.click("Alarms");
    browser.wait_for("By rules");
    assert!(!browser.text().contains("acknowledged by"), "{}", browser.text());
    browser
        .execute("document.querySelector('[aria-label=\"Your name, for away on attic\"]').focus()");
    browser.press(&["A", "d", "a", TAB, "o", "n", " ", "i", "t", ENTER]);
    browser.wait_for("acknowledged by Ada: on it");
    // The other one still asks for somebody.
    let asks = "return [...document.querySelectorAll('button[aria-label^=Acknowledge]')].map(one => one.ariaLabel)";
    assert_eq!(browser.execute(asks), serde_json::json!(["Acknowledge away on barn"]));
    let folder = tools::target().join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let mut faults = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for (width, height) in [(1280, 900), (390, 844)] {
            browser.resize(width, height);
            browser.go(&address(&world, "/alarms"));
            let found = serious(&browser, &axe).into_iter();
            faults.extend(found.map(|fault| format!("{scheme} {width}: {fault}")));
            let wide = browser.execute("return document.documentElement.scrollWidth");
            if wide.as_u64() > Some(width.into()) {
                faults.push(format!("{scheme}: {wide} pixels wide on a screen of {width}"));
            }
            let name = format!("alarms-by-rules-{scheme}-{width}.png");
            std::fs::write(folder.join(name), browser.picture()).unwrap();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    is_clean(&world, &browser);
}

#[test]
fn bad_rollout_is_pulled_back_before_its_owners_eyes_and_buttons_steer_it() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let browser = signed_in(&mut world);
    browser.click("Rollouts");
    browser.wait_for("running");
    browser.go(&address(&world, "/rollouts/1"));
    browser.click("Pause");
    browser.wait_for("paused");
    browser.click("Resume");
    browser.wait_for("running");
    fleet::fail_rollout(&mut world);
    browser.wait_for("3 faults since the update, 0 are allowed");
    assert!(browser.text().contains("thermostat to 1.1.0: rolled back"), "{}", browser.text());
    is_clean(&world, &browser);
}

#[test]
fn every_page_passes_axe_in_light_and_dark_fits_a_phone_and_is_pictured() {
    let Some(modules) = tools::installed().filter(|_| has_browser()) else { return };
    let axe = std::fs::read_to_string(modules.join("axe-core/axe.min.js")).unwrap();
    let mut world = fleet::world();
    fleet::fail_rollout(&mut world);
    let browser = signed_in(&mut world);
    let folder = tools::target().join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let mut faults = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for page in PAGES {
            browser.resize(1280, 900);
            browser.go(&address(&world, page));
            faults.extend(
                serious(&browser, &axe)
                    .into_iter()
                    .map(|fault| format!("{page} {scheme}: {fault}")),
            );
            let name = page.trim_start_matches('/').replace('/', "-");
            std::fs::write(folder.join(format!("{name}-{scheme}.png")), browser.picture()).unwrap();
            if scheme == "light" {
                browser.resize(390, 844);
                let wide = browser.execute("return document.documentElement.scrollWidth");
                if wide.as_u64() > Some(390) {
                    faults.push(format!("{page}: {wide} pixels wide on a phone of 390"));
                }
                std::fs::write(folder.join(format!("{name}-phone.png")), browser.picture())
                    .unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    is_clean(&world, &browser);
    // A mistake is found, so that the silence before means something.
    browser.execute(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button>')",
    );
    assert!(serious(&browser, &axe).iter().any(|fault| fault.contains("button-name")));
}

#[test]
fn keyboard_alone_reaches_the_content_and_filters_a_list() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let browser = signed_in(&mut world);
    browser.go(&address(&world, "/machines"));
    browser.press(&[TAB]);
    let focused = "return document.activeElement.innerText";
    assert_eq!(browser.execute(focused), "To the content");
    browser.press(&[ENTER, TAB]);
    assert_eq!(browser.execute("return document.activeElement.id"), "q");
    browser.press(&["c", "e", "l", "l", "a", "r", ENTER]);
    // The whole list names it, too.
    wait_until(|| {
        let (url, text) = (browser.url(), browser.text());
        let is_filtered = url.contains("?q=cellar") && !text.contains("attic");
        (is_filtered && text.contains("cellar")).then_some(()).ok_or(format!("{url}:\n{text}"))
    });
}

#[test]
fn text_of_a_tenant_never_runs_and_pages_are_framed_and_steered_by_nobody_else() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    fleet::fault(
        &mut world,
        "<img src=x onerror=document.title='broken-in'><script>document.title='broken-in'</script>",
    );
    let browser = signed_in(&mut world);
    for page in ["/faults", "/alarms", "/devices/attic"] {
        browser.go(&address(&world, page));
        assert!(browser.text().contains("<img src=x"), "the text is there as text");
        assert_ne!(browser.execute("return document.title"), "broken-in", "{page}");
        assert_eq!(browser.execute("return document.images.length"), 0, "{page}");
    }
    is_clean(&world, &browser);
    // Another site (another host name of this computer) frames a page, and posts a form in the owner's name.
    let own = address(&world, "");
    let html = format!(
        "<title>elsewhere</title><iframe src='{own}/devices'></iframe>\
         <form method=post action='{own}/rollouts/1/abort'><button>Win</button></form>"
    );
    browser.go(&format!("data:text/html,{}", html.replace('#', "%23")));
    let framed = browser.text_of_frame();
    assert!(
        !framed.contains("attic") && !framed.contains("tenure login"),
        "a page shows in a frame: {framed}"
    );
    browser.click("Win");
    let token = world.token(&owner(1));
    let state = world.get("/v1/rollouts/1", &[&token]).json()["state"].clone();
    assert_eq!(state, "running", "the form of another site aborted nothing");
}

/// The page of a machine that tries what a page of its own origin could.
const PRYING: &str = r#"<!doctype html><title>panel</title><link rel="stylesheet" href="panel.css">
<h1>Panel</h1><p>Holding <output>?</output></p><ul></ul>
<form method="post" action="set"><input name="degrees" value="19"><button>Set</button></form>
<script>
const note = (what, found) => {
  document.querySelector("ul").append(Object.assign(document.createElement("li"), { textContent: `${what}: ${found}` }));
};
const attempt = (what, action) => { try { note(what, action()) } catch (error) { note(what, error.name) } };
attempt("origin", () => window.origin);
attempt("cookie", () => document.cookie);
attempt("storage", () => localStorage.length);
attempt("worker", () => navigator.serviceWorker.controller);
const ask = (what, path, options) => fetch(path, options).then(
  answer => answer.text().then(text => note(what, `${answer.status} ${text}`)), error => note(what, error.name));
ask("list", "/v1/devices", { credentials: "include" });
ask("sign-out", "/sign-out", { method: "POST", credentials: "include" });
ask("neighbour", "/m/neighbour@attic/", { credentials: "include" });
ask("own", "own");
ask("own put", "own", { method: "PUT", body: "{}", headers: { "content-type": "application/json" } });
new EventSource("live").onmessage = event => document.querySelector("output").textContent = event.data;
</script>"#;

/// The answer of that machine to a request.
fn prying(request: &str, degrees: &Mutex<String>) -> String {
    let line = request.lines().next().unwrap_or_default();
    let mut degrees = degrees.lock().unwrap();
    match line.strip_suffix(" HTTP/1.1") {
        Some("GET /") => PRYING.into(),
        Some("GET /panel.css") => {
            "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\n\r\nh1 { color: rgb(1, 2, 3); }".into()
        }
        Some("GET /own") => "mine".into(),
        Some("PUT /own") => "put".into(),
        Some("GET /live") => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            format!("{head}retry: 200\ndata: {degrees} degrees\n\n")
        }
        Some("POST /set") => {
            *degrees = request.rsplit_once("degrees=").unwrap().1.into();
            "HTTP/1.1 303 \r\nlocation: /\r\nset-cookie: tenure_session=mine; Path=/\r\n\r\n".into()
        }
        _ => "HTTP/1.1 404 \r\n\r\nnothing".into(),
    }
}

#[test]
fn page_of_a_machine_lives_beside_the_hub_s_and_reaches_nothing_of_it() {
    if !has_browser() {
        return;
    }
    let mut world = fleet::world();
    let degrees = Arc::new(Mutex::new(String::from("21")));
    let held = Arc::clone(&degrees);
    world.house.put("panel@attic", false, move |request| Ok(prying(request, &held).into()));
    world.house.put("neighbour@attic", true, |_| Ok("the neighbour's page".into()));
    let browser = signed_in(&mut world);
    browser.go(&address(&world, "/m/panel@attic"));
    assert!(browser.url().contains("/m/panel@attic/~s"), "{}", browser.url());
    // Its own parts, live values and requests work.
    browser.wait_for("21 degrees");
    browser.wait_for("own: 200 mine");
    browser.wait_for("own put: 200 put");
    let color = "return getComputedStyle(document.querySelector('h1')).color";
    assert_eq!(browser.execute(color), "rgb(1, 2, 3)");
    *degrees.lock().unwrap() = "22".into();
    browser.wait_for("22 degrees");
    // It is at nobody's origin, and gets nothing of the hub's or of another machine's.
    for found in [
        "origin: null",
        "cookie: SecurityError",
        "storage: SecurityError",
        "list: TypeError",
        "sign-out: TypeError",
        "neighbour: TypeError",
    ] {
        browser.wait_for(found);
    }
    assert!(world.house.asked().iter().all(|(_, request)| !request.contains("neighbour")));
    browser.click("Set");
    browser.wait_for("19 degrees");
    browser.go(&address(&world, "/devices"));
    browser.wait_for("attic");
    assert!(browser.url().ends_with("/devices"), "still signed in: {}", browser.url());
}

/// The violations of a page that axe calls serious or critical.
fn serious(browser: &Browser, axe: &str) -> Vec<String> {
    browser.execute(axe);
    let run = "const done = arguments[arguments.length - 1]; axe.run().then(result => done(result.violations), \
         error => done([{ id: String(error), impact: 'critical', nodes: [] }]))";
    let violations = browser.execute_async(run);
    let is_serious = |one: &&Value| matches!(one["impact"].as_str(), Some("serious" | "critical"));
    let words = |one: &Value| {
        let nodes: Vec<String> =
            one["nodes"].as_array().unwrap().iter().map(|node| node["html"].to_string()).collect();
        format!("{} ({}): {}", one["id"], one["help"], nodes.join(" "))
    };
    violations.as_array().unwrap().iter().filter(is_serious).map(words).collect()
}
