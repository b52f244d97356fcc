//! Other transactions in the way of the hub's, now and then.

use crate::fleet::NAMES;
use crate::fleet::rig::{Fleet, package};

/// Fails each tenth change of a row as another transaction would that came between.
const IN_THE_WAY: &str = "CREATE FUNCTION in_the_way() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
     IF random() < 0.1 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = 'serialization_failure'; END IF; \
     RETURN NULL; END $$";

#[test]
fn rollout_goes_on_and_is_counted_rightly_though_each_tenth_change_is_in_anothers_way() {
    if !tenure_testbed::has_postgres() {
        tenure_testbed::skip_without_tool("PostgreSQL");
        return;
    }
    let mut fleet = Fleet::new(&NAMES);
    let good = package("1.1.0", false);
    fleet.push(&good);
    fleet.write_by_hand(IN_THE_WAY);
    for table in ["devices", "audit", "passes", "rollouts", "rollout_devices", "leases"] {
        let trigger = format!(
            "CREATE TRIGGER shaken AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW \
             EXECUTE FUNCTION in_the_way()"
        );
        fleet.write_by_hand(&trigger);
    }
    let id = fleet.start(&good, &NAMES);
    let state = fleet.drive(id);
    let new = vec!["1.1.0".to_string(); NAMES.len()];
    assert_eq!((state["state"].as_str(), fleet.versions()), (Some("done"), new), "{state}");
    let counted = fleet.rows("SELECT state, devices FROM rollout_counts WHERE devices > 0");
    assert_eq!(counted, ["healthy 5"]);
    let done = fleet.rows("SELECT count(*) FROM audit WHERE action = 'rollout is done'");
    assert_eq!(done, ["1"]);
    assert!(fleet.hub.storage().database.verify_audit().unwrap().is_ok());
}
