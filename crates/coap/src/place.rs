//! The resources: what a path means.

use tenure_wire::{Name, Topic};

use crate::answer::Answer;
use crate::message::Code;

/// The first part of the path of a machine's function.
pub(crate) const MACHINES: &str = "m";
/// The first part of the path of a topic's last event.
pub(crate) const EVENTS: &str = "e";
/// The path of the list (RFC 6690 §4).
const WELL_KNOWN_CORE: [&str; 2] = [".well-known", "core"];

/// A resource, whether it is there or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The list of resources.
    Core,
    /// A function of a machine.
    Function { machine: Name, function: String },
    /// The last event of a topic.
    Topic(Topic),
}

impl Place {
    /// The resource at a path.
    ///
    /// # Errors
    /// The answer to whoever asks for one that can't be there.
    pub(crate) fn at(path: &[String]) -> Result<Self, Answer> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match parts[..] {
            [MACHINES, machine, function] => {
                let machine = machine.parse().map_err(|_| Answer::no_machine())?;
                Ok(Self::Function { machine, function: function.into() })
            }
            [EVENTS, topic] => topic.parse().map(Self::Topic).map_err(|_| no_topic()),
            _ if parts == WELL_KNOWN_CORE => Ok(Self::Core),
            [MACHINES, ..] => Err(not_found("a function is at /m/MACHINE/FUNCTION")),
            [EVENTS, ..] => Err(not_found("an event is at /e/TOPIC")),
            _ => Err(not_found("see /.well-known/core")),
        }
    }
}

/// The answer where a topic isn't one that visitors may hear of, whether there is one or not.
pub(crate) fn no_topic() -> Answer {
    not_found("no topic of that name is open here")
}

fn not_found(text: &str) -> Answer {
    Answer::error(Code::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_means_a_function_a_topic_or_the_list() {
        let at = |path: &str| {
            let parts: Vec<String> = path.split('/').map(String::from).collect();
            Place::at(&parts).map_err(|answer| String::from_utf8(answer.bytes).unwrap())
        };
        let function = at("m/lamp/on off").unwrap();
        let machine: Name = "lamp".parse().unwrap();
        assert_eq!(function, Place::Function { machine, function: "on off".into() });
        assert_eq!(at("e/door.front").unwrap(), Place::Topic("door.front".parse().unwrap()));
        assert_eq!(at(".well-known/core").unwrap(), Place::Core);
        for (path, text) in [
            ("m/lamp", "a function is at /m/MACHINE/FUNCTION"),
            ("m/lamp/on/x", "a function is at /m/MACHINE/FUNCTION"),
            ("m/LAMP/on", "no machine of that name is here"),
            ("e/door/front", "an event is at /e/TOPIC"),
            ("e/Door", "no topic of that name is open here"),
            (".well-known", "see /.well-known/core"),
            ("", "see /.well-known/core"),
        ] {
            assert_eq!(at(path).unwrap_err(), text, "{path}");
        }
        assert!(Place::at(&[]).is_err());
    }
}
