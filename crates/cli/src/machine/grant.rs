//! The rights that an owner grants of those that a package asks for.

use std::fmt::Display;
use std::io::IsTerminal as _;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_wire::Capabilities;
use tenure_wire::capability::{GrantUse, Right};
use tenure_wire::control::GrantReport;

use crate::terminal::output::prompt;

/// The value of `--grant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// All that the package asks for.
    All,
    /// Nothing.
    None,
    /// The rights of the machine that is updated, as far as the package asks for it.
    Same,
    /// The rights that this names.
    Some(Box<Capabilities>),
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "none" => return Ok(Self::None),
            "same" => return Ok(Self::Same),
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
            "reach" => granted.reach = parse(names)?,
            _ => {
                let lists = Right::ALL.map(Right::list).join(", ");
                return Err(format!(
                    "write `all`, `none`, `same`, or LIST=NAME,NAME with one of the lists {lists}"
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

/// Returns the owner's grants: what `--grant` says, else what the machine that is updated holds (`held`) if the
/// package asks for no more, else the answer to a question at the terminal. Where nobody can be asked,
/// leaving it open is an error.
///
/// # Errors
/// Nobody says what to grant, or more is granted than the package asks for.
pub fn decide(
    grants: &[Grant],
    asked: &Capabilities,
    held: Option<&Capabilities>,
) -> anyhow::Result<Capabilities> {
    if grants.is_empty() {
        return ask(asked, held);
    }
    let mut granted = Capabilities::default();
    for grant in grants {
        match grant {
            Grant::None => {}
            Grant::All => add(&mut granted, asked),
            Grant::Same => match held {
                Some(held) => add(&mut granted, &held.within(asked)),
                None => bail!("--grant same is for updates, and no such machine is on the device"),
            },
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
    extend(&mut granted.reach, &more.reach);
}

fn ask(asked: &Capabilities, held: Option<&Capabilities>) -> anyhow::Result<Capabilities> {
    let nothing = Capabilities::default();
    let held = held.unwrap_or(&nothing);
    let new = beyond(asked, held);
    if new.is_empty() {
        return Ok(asked.clone());
    }
    let holds = match held.is_empty() {
        true => String::new(),
        false => format!(
            "; of that its machine holds, and keeps by --grant same: {}",
            describe(&held.within(asked))
        ),
    };
    if !std::io::stdin().is_terminal() {
        bail!(
            "the package asks for: {}{holds}; say what it gets with --grant all, --grant none or \
             --grant LIST=NAME",
            describe(asked)
        );
    }
    prompt(&format!("the package asks for: {}{holds}\ngrant all of it?", describe(asked)))
        .context("the terminal")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the terminal")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(asked.clone()),
        _ => bail!("nothing is installed; to install it with less, see --grant"),
    }
}

/// The rights in `asked` that aren't held.
fn beyond(asked: &Capabilities, held: &Capabilities) -> Capabilities {
    let covered = asked.within(held);
    fn without<T: Clone + PartialEq>(all: &[T], some: &[T]) -> Vec<T> {
        all.iter().filter(|one| !some.contains(one)).cloned().collect()
    }
    Capabilities {
        publish: without(&asked.publish, &covered.publish),
        subscribe: without(&asked.subscribe, &covered.subscribe),
        calls: without(&asked.calls, &covered.calls),
        callers: without(&asked.callers, &covered.callers),
        peripherals: without(&asked.peripherals, &covered.peripherals),
        secrets: without(&asked.secrets, &covered.secrets),
        reach: without(&asked.reach, &covered.reach),
    }
}

/// The rights that a report of a device names.
///
/// # Errors
/// The device names something that is no right.
pub fn held(report: &GrantReport) -> anyhow::Result<Capabilities> {
    let mut held = Capabilities::default();
    for GrantUse { right, to, .. } in &report.uses {
        match format!("{}={to}", right.list()).parse() {
            Ok(Grant::Some(some)) => add(&mut held, &some),
            _ => bail!("the device tells of a right that is none: {} {to}", right.list()),
        }
    }
    Ok(held)
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
        (Right::Reach, texts(&capabilities.reach)),
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
        decide(&grants, &asked(), None).map(|granted| describe(&granted))
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
        assert!(decided(&["same"]).is_err(), "nothing is updated");
        for nonsense in ["", "calls", "peers=x", "calls=A", "ALL"] {
            assert!(nonsense.parse::<Grant>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn an_update_keeps_what_was_granted_and_gets_nothing_new_unasked() {
        let report = |rights: &[(Right, &str)]| {
            let uses = rights.iter();
            let uses =
                uses.map(|(right, to)| GrantUse { right: *right, to: (*to).into(), used: 7 });
            held(&GrantReport { uses: uses.collect(), denied: 0 }).unwrap()
        };
        let all =
            report(&[(Right::Call, "store@*"), (Right::Secret, "wifi"), (Right::Publish, "a.b")]);
        assert_eq!(
            decide(&[], &asked(), Some(&all)).unwrap(),
            asked(),
            "and no more than it asks for"
        );
        let part = report(&[(Right::Call, "store@attic")]);
        // Nobody can be asked here.
        let error = decide(&[], &asked(), Some(&part)).unwrap_err().to_string();
        assert!(error.contains("--grant same: calls store@attic;"), "{error}");
        let same = decide(&[Grant::Same], &asked(), Some(&part)).unwrap();
        assert_eq!(describe(&same), "calls store@attic");
    }
}
