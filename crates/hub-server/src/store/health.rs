//! Whether a hub can serve from its database.

use super::database::Database;
use super::error::DatabaseError;
use super::{figures, moving};

impl Database {
    /// Whether the database, each of its tables, can be read and has room for what is new.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn has_room(&mut self) -> Result<bool, DatabaseError> {
        self.check_place()?;
        let lacks_room = self.look(|connection| {
            figures::devices(connection)?;
            // A file may be damaged in any place; a server looks after its own.
            if !connection.is_shared() {
                moving::read_each(connection)?;
            }
            connection.lacks_room()
        })?;
        Ok(!lacks_room)
    }
}
