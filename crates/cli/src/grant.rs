//! What an owner grants of what a package asks for.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_wire::Capabilities;
use tenure_wire::capability::Right;

/// What `--grant` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// All that the package asks for.
    All,
    /// Nothing.
    None,
    /// What this names.
    Some(Box<Capabilities>),
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let (list, names) = text.split_once('=').unwrap_or((text, ""));
        let mut granted = Capabilities::default();
        match list {
            "publish" => granted.publish = parse(names)?,
            "subscribe" => granted.subscribe = parse(names)?,
            "calls" => granted.calls = parse(names)?,
            "callers" => granted.callers = parse(names)?,
            "peripherals" => granted.peripherals = parse(names)?,
            "secrets" => granted.secrets = parse(names)?,
            _ => {
                let lists = Right::ALL.map(Right::list).join(", ");
                return Err(format!(
                    "write `all`, `none`, or LIST=NAME,NAME with one of the lists {lists}"
                ));
            }
        }
        Ok(Self::Some(Box::new(granted)))
    }
}

fn parse<T: FromStr<Err: Display>>(names: &str) -> Result<Vec<T>, String> {
    names
        .split(',')
        .map(|name| name.parse().map_err(|error| format!("`{name}`: {error}")))
        .collect()
}

/// What the owner grants: what `--grant` says, or the answer to a question at the terminal. Where
/// nobody can be asked, leaving it open is an error.
///
/// # Errors
/// Nobody says what to grant, or more is granted than the package asks for.
pub fn decide(grants: &[Grant], asked: &Capabilities) -> anyhow::Result<Capabilities> {
    if grants.is_empty() {
        return ask(asked);
    }
    let mut granted = Capabilities::default();
    for grant in grants {
        match grant {
            Grant::None => {}
            Grant::All => add(&mut granted, asked),
            Grant::Some(some) => add(&mut granted, some),
        }
    }
    granted.check().map_err(|right| {
        anyhow::anyhow!("--grant names too many {}, or one of them twice", right.list())
    })?;
    if granted.within(asked) != granted {
        let asked = describe(asked);
        bail!("--grant goes beyond what the package asks for; it asks for: {asked}");
    }
    Ok(granted)
}

fn add(granted: &mut Capabilities, more: &Capabilities) {
    fn extend<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
        let new: Vec<T> = more.iter().filter(|one| !list.contains(one)).cloned().collect();
        list.extend(new);
    }
    extend(&mut granted.publish, &more.publish);
    extend(&mut granted.subscribe, &more.subscribe);
    extend(&mut granted.calls, &more.calls);
    extend(&mut granted.callers, &more.callers);
    extend(&mut granted.peripherals, &more.peripherals);
    extend(&mut granted.secrets, &more.secrets);
}

fn ask(asked: &Capabilities) -> anyhow::Result<Capabilities> {
    if asked.is_empty() {
        return Ok(Capabilities::default());
    }
    if !std::io::stdin().is_terminal() {
        bail!(
            "the package asks for: {}; say what it gets with --grant all, --grant none or \
             --grant LIST=NAME",
            describe(asked)
        );
    }
    eprint!("the package asks for: {}\ngrant all of it? [y/N] ", describe(asked));
    std::io::stderr().flush().context("the terminal")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the terminal")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(asked.clone()),
        _ => bail!("nothing is installed; to install it with less, see --grant"),
    }
}

/// The lists that have something in them.
pub fn lists(capabilities: &Capabilities) -> Vec<(&'static str, Vec<String>)> {
    fn texts<T: ToString>(list: &[T]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }
    let lists = [
        (Right::Publish, texts(&capabilities.publish)),
        (Right::Subscribe, texts(&capabilities.subscribe)),
        (Right::Call, texts(&capabilities.calls)),
        (Right::Caller, texts(&capabilities.callers)),
        (Right::Peripheral, texts(&capabilities.peripherals)),
        (Right::Secret, texts(&capabilities.secrets)),
    ];
    lists
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(right, names)| (right.list(), names))
        .collect()
}

/// Rights in a line of text.
pub fn describe(capabilities: &Capabilities) -> String {
    let lists: Vec<String> = lists(capabilities)
        .iter()
        .map(|(list, names)| format!("{list} {}", names.join(" ")))
        .collect();
    if lists.is_empty() { "nothing".to_owned() } else { lists.join("; ") }
}

/// Rights as an object of lists.
pub fn object(capabilities: &Capabilities) -> Value {
    lists(capabilities).into_iter().map(|(list, names)| (list.to_owned(), json!(names))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Capabilities {
        Capabilities {
            calls: vec!["store@*".parse().unwrap()],
            secrets: vec!["wifi".parse().unwrap()],
            ..Capabilities::default()
        }
    }

    fn decided(words: &[&str]) -> anyhow::Result<String> {
        let grants: Vec<Grant> = words.iter().map(|word| word.parse().unwrap()).collect();
        decide(&grants, &asked()).map(|granted| describe(&granted))
    }

    #[test]
    fn an_owner_grants_all_nothing_or_part_and_never_more() {
        assert_eq!(decided(&["all"]).unwrap(), "calls store@*; secrets wifi");
        assert_eq!(decided(&["none"]).unwrap(), "nothing");
        assert_eq!(decided(&["calls=store@attic,store"]).unwrap(), "calls store@attic store");
        assert_eq!(
            decided(&["secrets=wifi", "calls=store@*"]).unwrap(),
            "calls store@*; secrets wifi"
        );
        for beyond in ["calls=*", "secrets=bank", "publish=door"] {
            let error = decided(&[beyond]).unwrap_err().to_string();
            assert!(error.contains("it asks for: calls store@*; secrets wifi"), "{error}");
        }
        for nonsense in ["", "calls", "peers=x", "calls=A", "ALL"] {
            assert!(nonsense.parse::<Grant>().is_err(), "{nonsense}");
        }
    }
}
