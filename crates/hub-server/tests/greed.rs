//! A disk that somebody fills leaves the others their part: what is pushed stops first, then what devices tell of their past and
//! what people change, then new devices; whoever filled it can be put out to the last. A-9.

mod world;

use serde_json::{Value, json};
use tenure_crypto::SigningKey;
use tenure_hub::Storage as _;
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Scope};

use world::{World, owner};

const OWN: &str = "sec-fetch-site: same-origin";
/// The pages of the database: as few as show what stops when.
const PAGES: u32 = 400;
/// The pages that whatever is written may take beside its bytes.
const ALWAYS_LEFT: u32 = 16;

fn own_key(number: u8) -> SigningKey {
    owner(100 + number)
}

fn post(world: &World, pass: &str, path: &str, body: &Value) -> u16 {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.request("POST", path, &[pass, OWN], &body).status
}

/// A hub with little room, its owner 1 who is signed in, and people of that key: the viewer Vera, and Mallory, an owner.
struct Scene {
    world: World,
    /// The owner's browser.
    key: String,
    /// Mallory's token.
    mallory: String,
    /// What was done so far, so that nothing is the same twice.
    done: u32,
}

impl Scene {
    fn new() -> Self {
        let mut world = World::with_fleet();
        let key = world.cookie(&owner(1));
        for (name, role, number) in [("Vera", "viewer", 1), ("Mallory", "owner", 2)] {
            let body = json!({ "name": name, "role": role }).to_string();
            let reply = world.request("POST", "/v1/people", &[&key, OWN], &body);
            let told: Value = serde_json::from_str(&reply.body).unwrap();
            let code = told["code"].as_str().unwrap().to_string();
            world.pass(&own_key(number), Access::Invitation { code }).unwrap();
        }
        let mallory = world.token(&own_key(2));
        world.database.limit_pages(Some(PAGES)).unwrap();
        Self { world, key, mallory, done: 0 }
    }

    /// Does something that takes room, of that kind; whether it was done.
    fn take(&mut self, kind: Greedy) -> bool {
        self.done += 1;
        let Self { world, mallory, done, .. } = self;
        match kind {
            Greedy::Pushes => {
                let blob = vec![*done as u8; 60_000 + *done as usize];
                let path = format!("/v2/a/blobs/uploads/?digest={}", world::digest(&blob));
                world.request_bytes("POST", &path, &[mallory], &blob).status == 201
            }
            Greedy::Invites => {
                let name = format!("{done} {}", "a".repeat(50));
                post(world, mallory, "/v1/people", &json!({ "name": name, "role": "viewer" }))
                    == 201
            }
            Greedy::ChangesRoles => {
                let role = if *done % 2 == 0 { "viewer" } else { "operator" };
                post(world, mallory, "/v1/people/Vera/role", &json!({ "role": role })) == 204
            }
            Greedy::SignsIn => {
                let cookie = world.cookie(&own_key(1));
                let newest = world.place.rows("SELECT max(id) FROM passes WHERE kind = 'page'");
                let path = format!("/v1/passes/{}/revoke", newest[0]);
                assert_eq!(post(world, &cookie, &path, &Value::Null), 204);
                true
            }
            Greedy::Enrols => {
                let name = format!("device-{done}");
                let is_put = world.put(1, *done as u8, &name, world::now() + 600).is_ok();
                world.database.commit().is_ok() && is_put
            }
            Greedy::HandsIn => {
                let receipt =
                    world::receipt(10, 1, 1, (*done).into(), tenure_package::NO_RECEIPT, 5);
                world.hand_in(vec![receipt]).is_ok()
            }
        }
    }

    /// Does that until it is refused, which sign-ins aren't. All but the last pages until then are taken at once.
    fn exhaust(&mut self, kind: Greedy) {
        let Some(stop) = kind.stops_at() else {
            for _ in 0..20 {
                assert!(self.take(kind), "{kind:?} takes no room");
            }
            return;
        };
        self.fill(stop - ALWAYS_LEFT - 4);
        for _ in 0..600 {
            if !self.take(kind) {
                return;
            }
        }
        panic!("{kind:?} is never refused");
    }

    /// Takes room until so many pages are used.
    fn fill(&self, pages: u32) {
        let used =
            "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count";
        let used: u32 = self.world.place.rows(used)[0].parse().unwrap();
        if used < pages {
            self.world.place.write_by_hand("CREATE TABLE IF NOT EXISTS ballast (bytes BLOB)");
            let bytes = (pages - used) * 4_000;
            let more = format!("INSERT INTO ballast VALUES (zeroblob({bytes}))");
            self.world.place.write_by_hand(&more);
        }
    }

    /// Whether it is done, or else refused as on a full disk.
    fn is_left(&mut self, kind: Greedy) -> bool {
        self.take(kind)
    }
}

/// What somebody takes room with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greedy {
    Pushes,
    Invites,
    ChangesRoles,
    SignsIn,
    HandsIn,
    Enrols,
}

impl Greedy {
    const ALL: [Self; 6] = [
        Self::Pushes,
        Self::Invites,
        Self::ChangesRoles,
        Self::SignsIn,
        Self::HandsIn,
        Self::Enrols,
    ];

    /// The pages at which that is refused, as docs/threats.md has it.
    fn stops_at(self) -> Option<u32> {
        match self {
            Self::Pushes => Some(PAGES / 8 * 7 - 14),
            Self::Invites | Self::ChangesRoles | Self::HandsIn => Some(PAGES / 16 * 15),
            Self::Enrols => Some(PAGES - PAGES / 32),
            Self::SignsIn => None,
        }
    }
}

#[test]
fn disk_that_somebody_fills_leaves_the_others_their_part_in_the_order_that_is_promised() {
    for kind in Greedy::ALL {
        let mut scene = Scene::new();
        if scene.world.is_on_a_server() {
            return;
        }
        scene.exhaust(kind);
        let left: Vec<bool> = [Greedy::Invites, Greedy::HandsIn, Greedy::Enrols, Greedy::SignsIn]
            .map(|other| other == kind || scene.is_left(other))
            .to_vec();
        // What people change and what devices tell of their past have one bound, before that of new devices.
        let expected = match kind {
            Greedy::Pushes | Greedy::SignsIn => [true; 4],
            _ => [left[0], left[1], true, true],
        };
        assert_eq!(left, expected, "{kind:?}");
    }
}

#[test]
fn whoever_filled_the_disk_is_put_out_to_the_last() {
    for first in 0..Greedy::ALL.len() {
        let mut scene = Scene::new();
        if scene.world.is_on_a_server() {
            return;
        }
        for step in 0..Greedy::ALL.len() {
            scene.exhaust(Greedy::ALL[(first + step) % Greedy::ALL.len()]);
        }
        let Scene { mut world, key, mallory, .. } = scene;
        assert_eq!(
            post(&world, &mallory, "/v1/people", &json!({ "name": "Eve", "role": "owner" })),
            507
        );
        let token = world.pass(&owner(1), world::token_access(vec![Scope::Read]));
        assert_eq!(token, Err(HubRefusal::Full));
        // The owner signs in anew, by a browser and by a command.
        let anew = world.cookie(&owner(1));
        let session: Answer<Pass> = world.pass(&owner(1), Access::Session);
        session.unwrap();
        let down = json!({ "role": "viewer" });
        assert_eq!(post(&world, &anew, "/v1/people/Mallory/role", &down), 204);
        assert_eq!(post(&world, &anew, "/v1/people/Mallory/dismiss", &Value::Null), 204);
        assert_eq!(post(&world, &key, "/v1/people/Vera/dismiss", &Value::Null), 204);
        assert_eq!(world.get("/v1/devices", &[&mallory]).status, 401);
        let passes = world.get("/v1/passes", &[&anew]).json();
        for pass in passes["items"].as_array().unwrap() {
            let path = format!("/v1/passes/{}/revoke", pass["id"]);
            let by = if pass["kind"] == "page" { &anew } else { &key };
            assert!([204, 401].contains(&post(&world, by, &path, &Value::Null)), "{path}");
        }
        let entries = world.place.rows("SELECT count(*) FROM audit WHERE action = 'dismissed'");
        assert_eq!(entries, ["2"], "and it is noted");
        assert!(world.database.verify_audit().unwrap().is_ok());
    }
}

#[test]
fn changes_of_a_day_are_bounded_and_the_others_still_have_theirs() {
    let mut scene = Scene::new();
    scene.world.database.limit_pages(None).unwrap();
    let Scene { ref world, ref key, ref mallory, .. } = scene;
    let flip = |number: u32| {
        let role = if number.is_multiple_of(2) { "operator" } else { "viewer" };
        post(world, mallory, "/v1/people/Vera/role", &json!({ "role": role }))
    };
    let refused = (0..3_000).find(|number| flip(*number) != 204).unwrap();
    assert!((1_900..=2_000).contains(&refused), "{refused}");
    assert_eq!(flip(refused), 429);
    // What ends something is done all the same.
    assert_eq!(post(world, mallory, "/v1/people/Vera/dismiss", &Value::Null), 204);
    assert_eq!(post(world, key, "/v1/people", &json!({ "name": "Ada", "role": "viewer" })), 201);
    assert_eq!(post(world, key, "/v1/people/Mallory/dismiss", &Value::Null), 204);
}
