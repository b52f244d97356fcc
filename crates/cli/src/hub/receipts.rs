//! `tenure receipts` and `tenure bill`: what machines used, fetched and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tenure_audit::{Audited, Finding, Judgement};
use tenure_package::{Package, Receipt, ReceiptChain, Tariff};
use tenure_wire::control::{Client as _, ReceiptForget, ReceiptPage, ReceiptQuery};
use tenure_wire::hub::Taken;
use tenure_wire::printable::counted;
use tenure_wire::usage::Usage;
use tenure_wire::{MachineId, VerifyingKey};

use crate::home::Home;
use crate::home::private_file;
use crate::hub::login;
use crate::machine::journal;
use crate::make::package::read_package;
use crate::reach::client::{Client, Device};
use crate::reach::pages::gather;
use crate::reach::whom::Where;
use crate::terminal::output::{Output, hex};
use crate::terminal::verdict::Verdict;
use crate::written_file;

/// Fetch the receipts of a device's machines: what each has used, period by period.
///
/// The device signs them and binds each to the one before. With --save they are added to a file and
/// then deleted from the device, which keeps at most 24 of each machine.
///
/// Example: tenure receipts --device attic --save attic.receipts
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Where,
    /// Add the receipts to this file, and let the device forget them once they are safe there.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Hand the receipts in at the hub, and let the device forget them once the hub has them.
    #[arg(long)]
    to_hub: bool,
    /// End the periods under way first, so that everything up to now is in a receipt.
    #[arg(long)]
    close: bool,
}

/// Check saved receipts, without a device, and price them.
///
/// Fails if a receipt was changed, forged, left out or put in twice.
///
/// With --audit the machine of a journal runs again, and what its device signed is compared with what it uses, unit by
/// unit. If an amount is wrong, or the machine does something else than its journal says, the exit status is 3.
///
/// Example: tenure bill attic.receipts --verify --tariff tariff.toml
#[derive(clap::Args)]
pub struct BillArguments {
    /// The file that `tenure receipts --save` made.
    receipts: PathBuf,
    /// Check signatures and chains and say nothing of prices.
    #[arg(long)]
    verify: bool,
    /// The prices.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["verify", "audit"])]
    tariff: Option<PathBuf>,
    /// Hold the receipts of one machine against its journal and its package.
    #[arg(long, requires = "journal", requires = "package")]
    audit: bool,
    /// The machine's journal, as `tenure journal fetch` writes it.
    #[arg(long, value_name = "FILE", requires = "audit")]
    journal: Option<PathBuf>,
    /// The machine's package.
    #[arg(long, value_name = "PACKAGE", requires = "audit")]
    package: Option<PathBuf>,
    /// The device whose receipts they must be, by its own key as `tenure key` prints it.
    #[arg(long, value_name = "KEY")]
    device_key: Option<VerifyingKey>,
}

/// Runs `tenure receipts`.
///
/// # Errors
/// The device can't be reached, or the file can't be written.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    if arguments.close {
        client.at(&device.route).receipts_close(())?;
    }
    let fetched = gather("the device tells of receipts", |skip| {
        let page: ReceiptPage = client.at(&device.route).receipts(ReceiptQuery { skip })?;
        Ok((page.receipts, page.more))
    })?;
    let mut known = Vec::new();
    for bytes in &fetched {
        let (receipt, signer) = Receipt::verify(bytes).context("a receipt of the device")?;
        if signer != device.status.key {
            bail!("the device gave a receipt that another device signed");
        }
        known.push(receipt);
    }
    if let Some(path) = &arguments.save {
        // Receipts that were saved before and not forgotten, because something went wrong between, come again.
        let lines: Vec<String> = fetched.iter().map(|bytes| hex(bytes)).collect();
        private_file::add_lines(path, &lines)?;
    }
    if arguments.to_hub {
        let Taken { new, known } = login::hand_in(&mut client, &arguments.place, &fetched)?;
        let object = json!({ "at_hub": { "new": new, "known": known } });
        output.line(&format!("at the hub: {new} new, {known} known"), &object);
    }
    if arguments.save.is_some() || arguments.to_hub {
        forget(&mut client, &device, &known)?;
    }
    if known.is_empty() && !output.is_json() {
        output.line("no receipts yet; --close ends the periods under way", &Value::Null);
    }
    for receipt in &known {
        output.line(&text(receipt), &object(receipt));
    }
    Ok(())
}

fn forget(client: &mut Client, device: &Device, receipts: &[Receipt]) -> anyhow::Result<()> {
    let mut last: BTreeMap<MachineId, u64> = BTreeMap::new();
    for receipt in receipts {
        let through = last.entry(receipt.machine).or_default();
        *through = receipt.number.max(*through);
    }
    for (machine, through) in last {
        let forget = ReceiptForget { machine, through };
        client.at(&device.route).receipts_forget(forget)?;
    }
    Ok(())
}

/// Runs `tenure bill`.
///
/// # Errors
/// A receipt isn't what its device signed, or a chain is broken; or the tariff can't be read.
pub fn bill(arguments: &BillArguments, output: &Output) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&arguments.receipts)
        .with_context(|| format!("can't read {}", arguments.receipts.display()))?;
    let tariff = arguments.tariff.as_deref().map(read_tariff).transpose()?;
    let mut chains: BTreeMap<MachineId, (ReceiptChain, u128)> = BTreeMap::new();
    let mut signed = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{}, line {}", arguments.receipts.display(), index + 1);
        let bytes = unhex(line.trim()).with_context(place)?;
        let (receipt, device) = Receipt::verify(&bytes).with_context(place)?;
        if arguments.device_key.is_some_and(|expected| expected != device) {
            bail!("{}: signed by {device}, which is another device", place());
        }
        let price = tariff.as_ref().map_or(0, |tariff| tariff.price(&receipt));
        match chains.get_mut(&receipt.machine) {
            Some((chain, sum)) => {
                chain.follow(&bytes).with_context(place)?;
                *sum += price;
            }
            None => {
                let chain = ReceiptChain::begin(&bytes).with_context(place)?;
                chains.insert(receipt.machine, (chain, price));
            }
        }
        signed.push(bytes);
    }
    // What a command that failed wrote proves nothing, and costs nothing.
    ensure!(!signed.is_empty(), "{} holds no receipt", arguments.receipts.display());
    let unit = tariff.as_ref().map(|tariff| tariff.currency.as_str());
    for (machine, (chain, price)) in &chains {
        print_chain(machine, chain, unit.map(|unit| (unit, *price)), output);
    }
    if let Some(unit) = unit {
        let sum: u128 = chains.values().map(|(_, price)| price).sum();
        let money = money(sum, unit);
        let object = json!({ "sum_millionths": sum.to_string(), "currency": unit });
        output.line(&format!("sum: {money}"), &object);
    }
    match (&arguments.journal, &arguments.package) {
        (Some(journal), Some(package)) => audit(&signed, journal, package, output),
        _ => Ok(()),
    }
}

/// Holds signed receipts against a journal and the package of its machine.
fn audit(
    receipts: &[Vec<u8>],
    journal: &Path,
    package_path: &Path,
    output: &Output,
) -> anyhow::Result<()> {
    let journal = journal::read(journal)?;
    let bytes = read_package(package_path)?;
    let package = Package::parse(&bytes)?;
    let code = journal::code(package_path, &package)?;
    let audited = tenure_audit::audit(receipts, &journal, &code, journal::FUEL_MAX, &mut ());
    let audited = audited.map_err(|error| match error {
        tenure_audit::AuditError::Replay(error) => {
            journal::explained(error, package_path, &package, output)
        }
        error => error.into(),
    })?;
    let Audited { findings, uncovered } = &audited;
    for finding in findings {
        let object = json!({
            "receipt": finding.receipt,
            "amount": finding.item.as_str(),
            "signed": finding.signed,
            "judgement": judgement(finding).0,
            "least": judgement(finding).1,
            "most": judgement(finding).2,
        });
        output.line(&finding_text(finding), &object);
    }
    for number in uncovered {
        let text = format!("receipt {number}: its period isn't in the journal, or not whole");
        output.line(&text, &json!({ "receipt": number, "judgement": "not covered" }));
    }
    ensure!(
        !findings.is_empty(),
        "no period is whole in the journal, so that nothing was audited: fetch the journal after the next receipt"
    );
    if audited.wrong().next().is_some() {
        let words = "the device signed for something else than the machine used";
        return Err(Verdict { status: journal::DIFFERS, words }.into());
    }
    Ok(())
}

/// The word for a judgement, and its bounds.
fn judgement(finding: &Finding) -> (&'static str, Option<u64>, Option<u64>) {
    match finding.judgement {
        Judgement::Proved => ("proved", None, None),
        Judgement::Within { least, most } => ("within bounds", Some(least), Some(most)),
        Judgement::Told => ("told", None, None),
        Judgement::Wrong { least, most } => ("wrong", Some(least), Some(most)),
    }
}

fn finding_text(finding: &Finding) -> String {
    let Finding { receipt, item, signed, .. } = finding;
    let (word, least, most) = judgement(finding);
    let bounds = match (least, most) {
        (Some(least), Some(most)) if least == most => format!(": {least}"),
        (Some(least), Some(most)) => format!(": {least} to {most}"),
        _ => String::new(),
    };
    format!("receipt {receipt}: {signed} {}, {word}{bounds}", item.as_str())
}

fn print_chain(
    machine: &MachineId,
    chain: &ReceiptChain,
    price: Option<(&str, u128)>,
    output: &Output,
) {
    let last = chain.last();
    let first = last.number + 1 - chain.length;
    let began = if first == 0 { String::new() } else { format!(" (from number {first} on)") };
    let priced = price.map_or(String::new(), |(unit, price)| format!(": {}", money(price, unit)));
    let text = format!(
        "{} {machine}: {}{began}, the last for {} s each, signed and unbroken{priced}\n  {}",
        last.name,
        counted(chain.length, "receipt"),
        last.period_s,
        amounts(&chain.total)
    );
    let mut object = json!({
        "machine": machine.to_string(),
        "name": last.name.as_str(),
        "device_key": chain.device().to_string(),
        "tenant": last.tenant.to_string(),
        "receipts": chain.length,
        "first": first,
        "counted_ms": chain.counted_ms,
        "period_s": last.period_s,
        "usage": usage(&chain.total),
    });
    if let Some((unit, price)) = price {
        object["price_millionths"] = json!(price.to_string());
        object["currency"] = json!(unit);
    }
    output.line(&text, &object);
}

/// Reads a file of prices.
///
/// # Errors
/// It can't be read, or isn't one.
pub(crate) fn read_tariff(path: &Path) -> anyhow::Result<Tariff> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    written_file::parse(&text).with_context(|| path.display().to_string())
}

fn unhex(text: &str) -> anyhow::Result<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    match digits {
        Some(digits) if !digits.is_empty() && digits.len().is_multiple_of(2) => {
            Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => bail!("not a receipt: each line is one, in hexadecimal digits"),
    }
}

/// Millionths as a number of whole units, without ever being a float.
fn money(millionths: u128, unit: &str) -> String {
    format!("{}.{:06} {unit}", millionths / 1_000_000, millionths % 1_000_000)
}

fn text(receipt: &Receipt) -> String {
    let Receipt { name, number, counted_ms, tier, .. } = receipt;
    let seconds = counted_ms / 1000;
    let period = receipt.period_s;
    format!(
        "{name} number {number}, {seconds} s of {period}, tier {tier}: {}",
        amounts(&receipt.usage)
    )
}

fn amounts(usage: &Usage) -> String {
    format!(
        "{} fuel, {}.{:06} s run, {} bytes of memory at most, {} B·s of code, {} B·s stored, \
         {} writes of {} bytes to flash, {} messages, {} bytes sent",
        usage.fuel,
        usage.run_us / 1_000_000,
        usage.run_us % 1_000_000,
        usage.memory_bytes_peak,
        usage.code_byte_ms / 1000,
        usage.stored_byte_ms / 1000,
        usage.flash_writes,
        usage.flash_bytes,
        usage.messages,
        usage.air_bytes
    )
}

fn object(receipt: &Receipt) -> Value {
    json!({
        "name": receipt.name.as_str(),
        "machine": receipt.machine.to_string(),
        "tenant": receipt.tenant.to_string(),
        "package": receipt.package.to_string(),
        "lease": receipt.lease,
        "tier": receipt.tier,
        "period_s": receipt.period_s,
        "number": receipt.number,
        "began_unix_s": receipt.began_unix_s,
        "ended_unix_s": receipt.ended_unix_s,
        "counted_ms": receipt.counted_ms,
        "usage": usage(&receipt.usage),
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "fuel": usage.fuel,
        "run_us": usage.run_us,
        "memory_bytes_peak": usage.memory_bytes_peak,
        "code_byte_ms": usage.code_byte_ms,
        "stored_byte_ms": usage.stored_byte_ms,
        "flash_writes": usage.flash_writes,
        "flash_bytes": usage.flash_bytes,
        "messages": usage.messages,
        "air_bytes": usage.air_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tariff: &str) -> Result<Tariff, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tariff.toml");
        std::fs::write(&path, tariff).unwrap();
        read_tariff(&path).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn tariff_with_a_tier_that_none_can_be_is_refused() {
        assert_eq!(read("[tiers_percent]\n4 = 250").unwrap().tiers_percent[&4], 250);
        for tier in ["tier4", "04", "four", "70000", "\"-1\"", "\" 4\"", "\"+4\""] {
            let error = read(&format!("[tiers_percent]\n{tier} = 250")).unwrap_err();
            assert!(error.contains("is no tier"), "{tier}: {error}");
        }
        let error = read("fuel_milion = 1").unwrap_err();
        assert!(error.contains("did you mean `fuel_million`?"), "{error}");
    }
}
