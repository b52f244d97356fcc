//! The hub's database by the commands: taking over a flash file, backups, the audit log.

use crate::harness::User;

#[test]
fn hub_is_backed_up_while_it_runs_and_its_audit_log_is_verified() {
    let user = User::new();
    let mut hub = user.hub();
    let _device = user.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    user.json(&["hub", "backup", "--data", "hub", "--to", "copy.sqlite"]);
    let verified = user.json(&["hub", "verify-audit", "copy.sqlite"]);
    assert_eq!(verified["entries"], 1, "the device was listed");
    let error = user.error(&["hub", "backup", "--data", "hub", "--to", "copy.sqlite"]);
    assert!(error.contains("copy.sqlite"), "{error}");
    let error = user.error(&["hub", "backup", "--data", "attic", "--to", "other.sqlite"]);
    assert!(error.contains("holds no hub"), "{error}");
}
