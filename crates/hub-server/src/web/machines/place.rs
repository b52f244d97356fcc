//! Where a page of a machine stands among the hub's: `/m/NAME@DEVICE/~TICKET/`, and below it whatever the machine has.

use tenure_wire::{Name, Target};

use super::tickets::Ticket;

/// A path below `/m/`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) machine: Target,
    pub(super) device: Name,
    pub(super) ticket: Option<Ticket>,
    /// The path that the machine sees, from its `/` on.
    pub(super) rest: String,
}

impl Place {
    /// The place that a path of a request means; `None` if no page can be there.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.strip_prefix("/m/")?;
        let (name, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
        // RFC 3986 §3.3 lets the sign stand for itself; some programs escape it.
        let machine: Target = name.replace("%40", "@").parse().ok()?;
        let Target::Remote { device, .. } = &machine else { return None };
        let device = device.clone();
        let (ticket, rest) = match rest.strip_prefix("/~").and_then(after_ticket) {
            Some((ticket, rest)) => (Some(ticket), rest),
            None => (None, rest),
        };
        if has_dot_segment(rest) {
            return None;
        }
        let rest = if rest.is_empty() { "/" } else { rest };
        Some(Self { machine, device, ticket, rest: rest.into() })
    }

    /// The path of the page with a ticket, or without one, and without the `/` at its end.
    pub(super) fn below(&self, ticket: Option<&Ticket>) -> String {
        let ticket = ticket.map(|ticket| format!("/~{ticket}")).unwrap_or_default();
        format!("/m/{}{ticket}", self.machine)
    }
}

/// A ticket at the beginning of a path, and what comes after it.
fn after_ticket(path: &str) -> Option<(Ticket, &str)> {
    let (ticket, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
    Some((ticket.parse().ok()?, rest))
}

/// Whether a path has segments that lead up or nowhere (RFC 3986 §5.2.4). A browser takes them out before it asks, and a
/// proxy may: they would lead out of the page, or to another one.
fn has_dot_segment(path: &str) -> bool {
    path.split(['/', '\\']).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment.split("%2f").any(|part| matches!(part, "." | ".."))
            || segment.split("%5c").any(|part| matches!(part, "." | ".."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "s17-00112233445566778899aabbccddeeff";

    #[test]
    fn path_is_taken_apart() {
        for (path, machine, has_ticket, rest) in [
            ("/m/panel@attic", "panel@attic", false, "/"),
            ("/m/panel@attic/", "panel@attic", false, "/"),
            ("/m/panel%40attic/a/b", "panel@attic", false, "/a/b"),
            ("/m/panel@attic/~mine/b", "panel@attic", false, "/~mine/b"),
            ("/m/panel@attic/TICKET", "panel@attic", true, "/"),
            ("/m/panel@attic/TICKET/a%2Fb//c", "panel@attic", true, "/a%2Fb//c"),
            ("/m/panel@attic/TICKET/...x", "panel@attic", true, "/...x"),
        ] {
            let path = path.replace("TICKET", &format!("~{TICKET}"));
            let place = Place::of(&path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(place.machine.to_string(), machine, "{path}");
            assert_eq!((place.ticket.is_some(), &*place.rest), (has_ticket, rest), "{path}");
        }
        let place = Place::of(&format!("/m/panel@attic/~{TICKET}/x")).unwrap();
        assert_eq!(place.below(place.ticket.as_ref()), format!("/m/panel@attic/~{TICKET}"));
        assert_eq!(place.below(None), "/m/panel@attic");
    }

    #[test]
    fn path_that_leads_up_or_names_no_machine_of_a_device_is_no_page() {
        for path in [
            "/m",
            "/m/",
            "/m/panel",
            "/m/@attic",
            "/m/panel@",
            "/m/#00@attic",
            "/m/panel@attic@barn",
            "/m/../x@y",
            "/m/a@b/..",
            "/m/a@b/../../devices",
            "/m/a@b/%2e%2E/x",
            "/m/a@b/x/.%2e",
            "/m/a@b/..%2fdevices",
            "/m/a@b/x%2F..%2f..",
            "/m/a@b/..%5cdevices",
            "/m/a@b/..\\x",
            "/m/a@b/.",
            "/m/a%00@b/",
            "/m/a@b%2fc",
        ] {
            assert_eq!(Place::of(path), None, "{path}");
        }
    }
}
