//! The pages, with each tag on a line of its own.

use crate::fleet::{with_fleet, without_chance};
use crate::world::owner;

/// A file's name, the page's path, whether its reader is signed in, and the answer's status.
pub(crate) const PAGES: [(&str, &str, bool, u16); 23] = [
    ("sign-in", "/sign-in", false, 200),
    ("sign-in-refused", "/sign-in?code=0000", false, 403),
    ("home", "/", true, 200),
    ("devices-filtered", "/devices?q=att&sort=-device&limit=1", true, 200),
    ("device", "/devices/attic", true, 200),
    ("device-silent", "/devices/den", true, 200),
    ("machines", "/machines", true, 200),
    ("alarms", "/alarms", true, 200),
    ("faults", "/faults", true, 200),
    ("device-reports", "/device-reports", true, 200),
    ("machine-metrics", "/machine-metrics", true, 200),
    ("machine-use", "/machine-use", true, 200),
    ("packages", "/packages", true, 200),
    ("rollouts", "/rollouts", true, 200),
    ("rollout", "/rollouts/1", true, 200),
    ("rollout-devices", "/rollout-devices", true, 200),
    ("receipts", "/receipts", true, 200),
    ("bills", "/bills", true, 200),
    ("tenants", "/tenants", true, 200),
    ("audit", "/audit", true, 200),
    ("people", "/people", true, 200),
    ("passes", "/passes", true, 200),
    ("not-found", "/nothing", true, 404),
];

#[test]
fn pages_are_as_they_were_reviewed() {
    let pages = with_fleet(|world| {
        let cookie = world.cookie(&owner(1));
        let page = |(name, path, is_signed_in, status): &(&str, &str, bool, u16)| {
            let headers = [cookie.as_str()];
            let reply = world.get(path, if *is_signed_in { &headers } else { &[] });
            assert_eq!(reply.status, *status, "{path}: {}", reply.body);
            let text = without_chance(world, &cookie, &reply.body);
            (format!("{name}.html"), text.replace("><", ">\n<") + "\n")
        };
        PAGES.iter().map(page).collect::<Vec<_>>()
    });
    crate::check(&pages);
}
