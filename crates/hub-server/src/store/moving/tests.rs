use std::collections::BTreeSet;

use super::*;

/// What is made anew of the rows of other tables: counts.
const FOLLOW: [&str; 3] = ["figures", "rollout_counts", "rollout_holds"];

/// Whoever adds a table or a column adds it to what is moved.
#[test]
fn every_table_and_column_is_moved_or_follows_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path().join("hub.sqlite")).unwrap();
    let rows = |query: &str| -> Vec<String> {
        database.connection.statement(query).query_map([], |row| row.get(0)).unwrap()
    };
    let tables = rows("SELECT name FROM sqlite_schema WHERE type = 'table'");
    let known = TABLES.iter().map(|table| table.name).chain(FOLLOW);
    assert_eq!(tables.iter().map(String::as_str).collect::<BTreeSet<_>>(), known.collect());
    for table in &TABLES {
        // Hidden columns are generated.
        let columns =
            format!("SELECT name FROM pragma_table_xinfo('{}') WHERE hidden = 0", table.name);
        let columns: BTreeSet<String> = rows(&columns).into_iter().collect();
        let known = table.columns().map(|column| column.trim_matches('"').to_string());
        assert_eq!(columns, known.collect(), "{}", table.name);
    }
}
