//! The numbers of enrolments, invitations to the mesh, orders of experiments and mandates, of which a later one counts
//! more: `last-number`, in the folder of keys.
//!
//! A number is the time at which it is given, in milliseconds, or one more than the last if the clock shows an earlier
//! time than it did then.

use crate::home::{Home, private_file};
use crate::terminal::clock::now_in_milliseconds;

/// The file's name.
const FILE: &str = "last-number";

impl Home {
    /// The next number, which is also greater than `known`. Where the folder can't be written, a clock that is set back
    /// gives numbers of before again.
    pub fn next_number(&self, known: u64) -> u64 {
        let _lock = self.lock();
        let path = self.folder().join(FILE);
        let last = std::fs::read_to_string(&path).ok();
        let last = last.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let number = now_in_milliseconds().max(known.max(last).saturating_add(1));
        let _ = private_file::replace(&path, format!("{number}\n").as_bytes());
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_grows_when_the_clock_was_set_back_and_beyond_those_of_another_computer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let now = now_in_milliseconds();
        let first = home.next_number(0);
        assert!((now..now + 60_000).contains(&first), "{first}");
        let next_year = first + 31_556_952_000;
        assert_eq!(home.next_number(next_year), next_year + 1);
        assert_eq!(home.next_number(0), next_year + 2);
        assert_eq!(Home::at(folder.path()).next_number(5), next_year + 3);
    }

    #[test]
    fn folder_that_cannot_be_written_has_numbers_by_the_clock() {
        let home = Home::at("/proc/none");
        assert!(home.next_number(7) >= now_in_milliseconds() - 60_000);
    }
}
