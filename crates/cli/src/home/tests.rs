use super::*;

#[test]
fn first_use_makes_a_key_and_later_uses_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("deep/er"));
    let first = home.tenant_key().unwrap().verifying_key();
    assert_eq!(home.tenant_key().unwrap().verifying_key(), first);
    assert_ne!(home.owner_key().unwrap().verifying_key(), first);
    assert_eq!(fs::read_dir(home.folder()).unwrap().count(), 2, "no drafts are left");
}

#[cfg(unix)]
#[test]
fn key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    home.tenant_key().unwrap();
    let path = folder.path().join("tenant.key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(home.tenant_key(), Err(HomeError::Exposed(_))));
}

#[test]
fn file_that_is_no_key_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenant.key");
    for text in ["", "0123", &"g".repeat(64), &"0".repeat(66), "\u{20ac}"] {
        let _ = fs::remove_file(&path);
        write_private(&path, text).unwrap();
        assert!(matches!(Home::at(folder.path()).tenant_key(), Err(HomeError::NotAKey(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn keys_of_a_backup_are_put_where_none_are_and_never_over_others() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let [owner, tenant, other] = [1, 2, 3].map(|number| SigningKey::from_bytes(&[number; 32]));
    let put = |owner: &SigningKey, tenant: &SigningKey| {
        home.check_vacant(owner, tenant)?;
        home.put_keys(&home.lock().unwrap(), owner, tenant)
    };
    assert!(put(&owner, &tenant).unwrap());
    assert_eq!(home.owner_key().unwrap().verifying_key(), owner.verifying_key());
    assert_eq!(home.tenant_key().unwrap().verifying_key(), tenant.verifying_key());
    assert!(!put(&owner, &tenant).unwrap(), "they are there");
    for (owner, tenant) in [(&other, &tenant), (&owner, &other)] {
        let refused = put(owner, tenant).unwrap_err();
        assert!(matches!(refused, HomeError::Other { .. }), "{refused}");
    }
    // One of both was made here already.
    fs::remove_file(home.folder().join(OWNER)).unwrap();
    put(&other, &other).unwrap_err();
    assert!(!home.has_owner_key(), "none of both is put where one can't be");
    assert!(put(&owner, &tenant).unwrap());
    assert_eq!(home.owner_key().unwrap().verifying_key(), owner.verifying_key());
}
