//! How rights are written: as lists by name in files, and in six lists in what is signed and kept.
//!
//! Rights that were signed before servers could be reached have no list for them. Servers follow the machines in the list of calls,
//! as text that is no machine's, so that both are read by one rule; a device that is older refuses them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use super::{Capabilities, PeerPattern, ReachPattern};
use crate::{Name, TopicPattern, list};

/// The form for people.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    publish: Vec<TopicPattern>,
    subscribe: Vec<TopicPattern>,
    calls: Vec<PeerPattern>,
    callers: Vec<PeerPattern>,
    peripherals: Vec<Name>,
    secrets: Vec<Name>,
    reach: Vec<ReachPattern>,
}

/// The form that is signed and kept.
#[derive(serde::Serialize, serde::Deserialize)]
struct Encoded {
    #[serde(deserialize_with = "list::read")]
    publish: Vec<TopicPattern>,
    #[serde(deserialize_with = "list::read")]
    subscribe: Vec<TopicPattern>,
    /// Machines, then servers.
    #[serde(deserialize_with = "list::read")]
    calls: Vec<String>,
    #[serde(deserialize_with = "list::read")]
    callers: Vec<PeerPattern>,
    #[serde(deserialize_with = "list::read")]
    peripherals: Vec<Name>,
    #[serde(deserialize_with = "list::read")]
    secrets: Vec<Name>,
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { publish, subscribe, calls, callers, peripherals, secrets, reach } = self.clone();
        if serializer.is_human_readable() {
            let written =
                Written { publish, subscribe, calls, callers, peripherals, secrets, reach };
            return written.serialize(serializer);
        }
        let machines = calls.iter().map(ToString::to_string);
        let calls = machines.chain(reach.iter().map(ToString::to_string)).collect();
        Encoded { publish, subscribe, calls, callers, peripherals, secrets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let Written { publish, subscribe, calls, callers, peripherals, secrets, reach } =
                Written::deserialize(deserializer)?;
            return Ok(Self { publish, subscribe, calls, callers, peripherals, secrets, reach });
        }
        let Encoded { publish, subscribe, calls: called, callers, peripherals, secrets } =
            Encoded::deserialize(deserializer)?;
        let (mut calls, mut reach) = (Vec::new(), Vec::new());
        for text in called {
            // The name of a machine has no colon, and each URL has one.
            if text.contains(':') {
                reach.push(ReachPattern::try_from(text).map_err(D::Error::custom)?);
            } else if reach.is_empty() {
                calls.push(text.parse().map_err(D::Error::custom)?);
            } else {
                return Err(D::Error::custom("machines come before servers"));
            }
        }
        Ok(Self { publish, subscribe, calls, callers, peripherals, secrets, reach })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights() -> Capabilities {
        Capabilities {
            calls: ["store@*", "#k7w3m"].iter().filter_map(|text| text.parse().ok()).collect(),
            secrets: Vec::from(["wifi".parse().unwrap()]),
            reach: ["GET https://a.example/v1/*", "http://192.0.2.1:8080/x"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            ..Capabilities::default()
        }
    }

    #[test]
    fn rights_survive_both_forms() {
        let bytes = postcard::to_allocvec(&rights()).unwrap();
        assert_eq!(postcard::from_bytes::<Capabilities>(&bytes).unwrap(), rights());
        let text = serde_json::to_string(&rights()).unwrap();
        assert!(
            text.contains(r#""calls":["store@*"]"#) && text.contains(r#""reach":["GET "#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Capabilities>(&text).unwrap(), rights());
        assert!(serde_json::from_str::<Capabilities>(r#"{"reaches":[]}"#).is_err());
    }

    #[test]
    fn rights_without_servers_are_encoded_as_before_there_were_any() {
        let rights = Capabilities { reach: Vec::new(), ..rights() };
        let before = (
            Vec::<&str>::new(),
            Vec::<&str>::new(),
            ["store@*"],
            Vec::<&str>::new(),
            Vec::<&str>::new(),
            ["wifi"],
        );
        // An array has no length in this encoding, and a list has.
        let mut expected = postcard::to_allocvec(&(before.0, before.1)).unwrap();
        expected.push(1);
        expected.extend(postcard::to_allocvec(&before.2).unwrap());
        expected.extend(postcard::to_allocvec(&(before.3, before.4)).unwrap());
        expected.push(1);
        expected.extend(postcard::to_allocvec(&before.5).unwrap());
        assert_eq!(postcard::to_allocvec(&rights).unwrap(), expected);
    }

    #[test]
    fn each_list_of_rights_has_one_encoding() {
        let mut encoded = Encoded {
            publish: Vec::new(),
            subscribe: Vec::new(),
            calls: ["https://a.example/*", "store"].map(ToString::to_string).to_vec(),
            callers: Vec::new(),
            peripherals: Vec::new(),
            secrets: Vec::new(),
        };
        let read = |encoded: &Encoded| {
            postcard::from_bytes::<Capabilities>(&postcard::to_allocvec(encoded).unwrap())
        };
        assert!(read(&encoded).is_err());
        encoded.calls.reverse();
        assert_eq!(read(&encoded).unwrap().reach[0].to_string(), "https://a.example/*");
        encoded.calls = Vec::from(["https://a.example".to_string()]);
        assert!(read(&encoded).is_err(), "a server without a path");
    }
}
