//! A machine's journal: kept on its device, fetched by its tenant, replayed, and held against its bill.

use tenure_crypto::SigningKey;
use tenure_journal::{Page, Record};
use tenure_package::{Journal, JournalHead};

use crate::guests::package;
use crate::harness::{User, finish, on};
use crate::secrets::tenant_of;

/// A journal as another device would have signed it, which says that the machine used one unit of fuel more.
fn overstated(bytes: &[u8]) -> Vec<u8> {
    let mut journal = Journal::parse(bytes).unwrap();
    let key = SigningKey::from_bytes(&[9; 32]);
    journal.device = key.verifying_key();
    let last = journal.pages.last_mut().unwrap();
    let mut page = Page::parse(last).unwrap();
    let Some(Record::Mark(mark)) = page.records.last_mut() else {
        panic!("a page ends with a mark")
    };
    mark.total += 1;
    *last = page.to_bytes().unwrap();
    let head = *journal.heads().last().unwrap();
    let signed = JournalHead { machine: journal.machine, pages: page.number + 1, head }.sign(&key);
    journal.head = signed.unwrap();
    journal.to_bytes().unwrap()
}

#[test]
fn machine_runs_again_from_its_journal_and_its_bill_is_proved() {
    let owner = User::new();
    let mut device = owner.device("attic", None);
    let (counter, address) = (package("counter"), device.address.clone());
    let at = ["--device", &address];
    let install = ["install", &counter, "--grant", "all", "--journal", "262144"];
    owner.ok(&[&install[..], &at[..]].concat());
    let bill = || owner.ok(&[&["receipts", "--close", "--save", "receipts"], &at[..]].concat());
    for (count, ends_period) in [("1", true), ("2", false), ("3", true)] {
        assert_eq!(owner.call(on(&device), &["counter", "add"]), count);
        if ends_period {
            bill();
        }
    }
    // It begins again with what it had stored.
    owner.ok(&[&["restart", "counter"], &at[..]].concat());
    device.wait_for_log("counter", "restarted by its owner");
    assert_eq!(owner.call(on(&device), &["counter", "add"]), "4");

    let tenant = tenant_of(&counter);
    let key = owner.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_string();
    let fetch = ["journal", "fetch", "counter", "-o", "kept", "--owner", &key];
    let fetched = tenant.json(&[&fetch[..], &at[..]].concat());
    assert!(fetched["pages"].as_u64().unwrap() > 2, "{fetched}");
    let error = owner.error(&[&fetch[..], &at[..]].concat());
    assert!(error.contains("the tenant has no machine"), "{error}");

    let replay = ["replay", "kept", "--package", &counter];
    let text = tenant.ok(&replay);
    assert!(text.contains("the same run of counter"), "{text}");
    std::fs::copy(owner.path("receipts"), tenant.path("receipts")).unwrap();
    let audit = ["bill", "receipts", "--audit", "--journal", "kept", "--package", &counter];
    let text = tenant.ok(&audit);
    let proved = ["fuel, proved", "bytes written to flash, proved", "state at the end, proved"];
    for line in proved {
        assert!(text.contains(line), "{line}: {text}");
    }

    let other = ["replay", "kept", "--package", &package("thermostat")];
    assert!(tenant.error(&other).contains("of another package"));
    let mut bytes = std::fs::read(tenant.path("kept")).unwrap();
    std::fs::write(tenant.path("more"), overstated(&bytes)).unwrap();
    let output = finish(tenant.command(&["replay", "more", "--package", &counter]));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("units of fuel in all, where the journal has"), "{text}");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(tenant.path("changed"), &bytes).unwrap();
    let output = finish(tenant.command(&["replay", "changed", "--package", &counter]));
    assert_eq!(output.status.code(), Some(1), "a journal that was changed is no other run");

    owner.ok(&[&["journal", "end", "counter"], &at[..]].concat());
    let error = tenant.error(&[&fetch[..], &at[..]].concat());
    assert!(error.contains("keeps no journal"), "{error}");
}
