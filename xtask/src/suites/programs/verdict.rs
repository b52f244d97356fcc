//! The verdict over a program: whether a machine printed what the same program prints natively.

use super::table::Program;

/// What a program needs as a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// Its code in the package, with the adapter.
    pub(super) code_bytes: u64,
    /// Its image in a device's flash.
    pub(super) image_bytes: u64,
    /// Its linear memory that was written to.
    pub(super) memory_bytes: u64,
    /// The fuel of its run.
    pub(super) fuel: u64,
    pub(super) board: OnBoard,
}

/// What came of a program on an emulated board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OnBoard {
    /// It wasn't run there.
    NotTried,
    /// It printed the same, with so much linear memory.
    Same { memory_bytes: u64 },
    /// Its image is longer than the flash for images.
    MoreFlash,
    /// It begins with more memory than there is.
    MoreMemory,
    /// It fails there, for this reason.
    Fails(String),
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It printed the same.
    Same(Figures),
    /// It can't be built or run, or printed something else.
    Failed(String),
    /// It wasn't tried: what it is built with isn't here.
    Skipped(String),
}

/// What an outcome says of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// It fails, and the table says why.
    FailsForReason,
    /// It fails, and the table doesn't know.
    Failed,
    /// The table says why it fails, and it doesn't.
    NeedlesslyNamed,
    /// Nothing is known of it.
    Skipped,
}

impl Outcome {
    pub(super) fn verdict(&self, program: &Program) -> Verdict {
        match (self, &program.fails) {
            (Self::Same(_), None) => Verdict::Passed,
            (Self::Failed(_), Some(_)) => Verdict::FailsForReason,
            (Self::Failed(_), None) => Verdict::Failed,
            (Self::Same(_), Some(_)) => Verdict::NeedlesslyNamed,
            (Self::Skipped(_), _) => Verdict::Skipped,
        }
    }
}

/// How the output of a machine differs from the native one, apart from what varies; none if it doesn't.
pub(super) fn difference(native: &[u8], machine: &[u8], varies: &[String]) -> Option<String> {
    let (native, machine) = (comparable(native, varies), comparable(machine, varies));
    if native == machine {
        return None;
    }
    let line_at = |text: &[u8], at: usize| {
        let line = text.split(|&byte| byte == b'\n').nth(at);
        line.map_or("nothing".to_owned(), |line| format!("{:?}", String::from_utf8_lossy(line)))
    };
    let same = native.split(|&byte| byte == b'\n').zip(machine.split(|&byte| byte == b'\n'));
    let at = same.take_while(|(native, machine)| native == machine).count();
    Some(format!(
        "line {} is {} natively and {} of the machine",
        at + 1,
        line_at(&native, at),
        line_at(&machine, at)
    ))
}

/// The output without what varies: each line ends behind the first such text in it.
fn comparable(output: &[u8], varies: &[String]) -> Vec<u8> {
    let lines = output.split(|&byte| byte == b'\n').map(|line| {
        let ends = varies.iter().filter_map(|text| {
            let at = line.windows(text.len()).position(|window| window == text.as_bytes());
            Some(at? + text.len())
        });
        &line[..ends.min().unwrap_or(line.len())]
    });
    lines.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::table::tests::program;
    use super::*;

    /// Figures of a program that no board was tried with.
    pub(in super::super) fn figures() -> Figures {
        let board = OnBoard::NotTried;
        Figures { code_bytes: 1, image_bytes: 2, memory_bytes: 3, fuel: 4, board }
    }

    fn differ(native: &str, machine: &str, varies: &[&str]) -> Option<String> {
        let varies: Vec<_> = varies.iter().map(|&text| text.to_owned()).collect();
        difference(native.as_bytes(), machine.as_bytes(), &varies)
    }

    #[test]
    fn each_byte_counts() {
        assert_eq!(differ("a\nb\n", "a\nb\n", &[]), None);
        let words = "line 2 is \"b\" natively and \"c\" of the machine";
        assert_eq!(differ("a\nb\n", "a\nc\n", &[]).as_deref(), Some(words));
        let words = "line 2 is \"\" natively and nothing of the machine";
        assert_eq!(differ("a\n", "a", &[]).as_deref(), Some(words), "the end of the last line");
        assert!(differ("", "a", &[]).is_some() && differ("a", "", &[]).is_some());
        assert!(difference(b"\xff", b"\xfe", &[]).is_some(), "bytes that are no text");
    }

    #[test]
    fn what_stands_behind_a_varying_text_in_its_line_does_not_count() {
        let varies = &[" nodes in", "Time:"];
        assert_eq!(differ("20 nodes in 1 ms\nend", "20 nodes in 9 s\nend", varies), None);
        assert_eq!(differ("Time: 1 nodes in 2", "Time: 3", varies), None, "the first of them");
        assert!(differ("20 nodes in 1 ms", "21 nodes in 1 ms", varies).is_some());
        assert!(differ("20 nodes in 1 ms\nend", "20 nodes in 1 ms\nEnd", varies).is_some());
        assert!(differ("Time: 1\nend", "Time: 1 end", varies).is_some(), "the lines behind it");
    }

    #[test]
    fn a_failure_without_a_reason_and_a_reason_without_a_failure_are_wrong() {
        let known = program("main = \"a.rs\"\nfails = \"it needs a terminal\"");
        let other = program("main = \"a.rs\"");
        let (same, failed) = (Outcome::Same(figures()), Outcome::Failed("no".into()));
        let skipped = Outcome::Skipped("no clang".into());
        assert_eq!([&known, &other].map(|it| skipped.verdict(it)), [Verdict::Skipped; 2]);
        assert_eq!(same.verdict(&other), Verdict::Passed);
        assert_eq!(failed.verdict(&other), Verdict::Failed);
        assert_eq!(failed.verdict(&known), Verdict::FailsForReason);
        assert_eq!(same.verdict(&known), Verdict::NeedlesslyNamed);
    }
}
