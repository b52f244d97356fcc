//! The commands that a page names in its blocks, and what it says of their outcome.

/// Languages of blocks that hold no commands.
const DATA: [&str; 6] = ["c", "json", "mermaid", "rust", "text", "toml"];
/// The beginning and the end of the line before a block of commands that can't run in a test.
const MARK: (&str, &str) = ("<!-- not run: ", " -->");

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The number of its line.
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) outcome: Outcome,
}

/// A command's outcome, as the page has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It prints these lines.
    Prints(Vec<String>),
    /// It succeeds, whatever it prints.
    Succeeds,
}

impl Outcome {
    /// Whether a command that printed `text` did as the page says.
    pub(super) fn is(&self, text: &str, succeeded: bool) -> bool {
        match self {
            Self::Prints(lines) => matches(&lines.join("\n"), text),
            Self::Succeeds => succeeded,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prints(lines) => write!(f, "print:\n{}", lines.join("\n")),
            Self::Succeeds => write!(f, "succeed"),
        }
    }
}

/// The kind of the block that a line stands in.
enum Block {
    /// Lines that begin with `$ ` are commands, the others what they print. So many commands stand before it.
    Console(usize),
    /// Each line is a command that must succeed.
    Script,
    /// Lines that nobody runs.
    Data,
}

/// The commands of a page, in their order.
///
/// # Errors
/// A block of commands is neither such that it can be run nor marked, or a mark stands before no such block.
pub(super) fn steps(page: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block = None;
    let mut mark = None;
    for (line, text) in (1..).zip(page.lines()) {
        let fence = text.trim_start().strip_prefix("```");
        match (&block, fence) {
            (None, Some(language)) => {
                let opened = opened(language, mark.take().is_some(), steps.len());
                block = Some(opened.map_err(at(line))?);
            }
            (None, None) => {
                if mark.is_some() && !text.trim().is_empty() {
                    return Err(at(line)("the mark before it stands before no block"));
                }
                mark = mark.or(marked(text).map_err(at(line))?);
            }
            (Some(_), Some("")) => block = None,
            (Some(Block::Data), _) => {}
            (Some(Block::Console(before)), _) => {
                let last = steps.iter_mut().skip(*before).last();
                match (text.strip_prefix("$ "), last.map(|step| &mut step.outcome)) {
                    (Some(command), _) => {
                        steps.push(step(line, command, Outcome::Prints(Vec::new())));
                    }
                    (None, Some(Outcome::Prints(lines))) => lines.push(text.into()),
                    (None, _) => return Err(at(line)("nothing prints this")),
                }
            }
            (Some(Block::Script), _) => {
                if !text.trim().is_empty() {
                    steps.push(step(line, text, Outcome::Succeeds));
                }
            }
        }
    }
    match (block, mark) {
        (None, None) => Ok(steps),
        _ => Err("the page ends in a block, or behind a mark".into()),
    }
}

fn step(line: usize, command: &str, outcome: Outcome) -> Step {
    Step { line, command: command.into(), outcome }
}

fn at(line: usize) -> impl Fn(&str) -> String {
    move |fault| format!("line {line}: {fault}")
}

/// The block that begins with this language, behind so many commands.
fn opened(language: &str, is_marked: bool, before: usize) -> Result<Block, &'static str> {
    match language {
        "console" | "sh" if is_marked => Ok(Block::Data),
        _ if is_marked => Err("a block that holds no commands needs no mark"),
        "console" => Ok(Block::Console(before)),
        "sh" => Ok(Block::Script),
        data if DATA.contains(&data) => Ok(Block::Data),
        _ => Err("a block is `console`, `sh`, or one of the languages that hold no commands"),
    }
}

/// The reason why the block that follows isn't run, if the line is a mark.
fn marked(line: &str) -> Result<Option<&str>, &'static str> {
    let Some(rest) = line.trim().strip_prefix(MARK.0) else { return Ok(None) };
    match rest.strip_suffix(MARK.1).map(str::trim) {
        Some(reason) if !reason.is_empty() => Ok(Some(reason)),
        _ => Err("a mark is one line and gives a reason"),
    }
}

/// Whether text is as a page has it, where `…` stands for any text, and as a line of its own for any lines.
fn matches(expected: &str, text: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn blocks_of_commands_are_run_and_others_are_not() {
    let page = "```console\n$ one\n1\n…\n$ two\n```\n\n```toml\nname = \"x\"\n```\n\
                ```sh\nthree   # 3\n\nfour\n```\n\n<!-- not run: needs a board -->\n\n```sh\nfive\n```\n";
    let prints =
        |lines: &[&str]| Outcome::Prints(lines.iter().map(|line| (*line).into()).collect());
    let expected = [
        step(2, "one", prints(&["1", "…"])),
        step(5, "two", prints(&[])),
        step(12, "three   # 3", Outcome::Succeeds),
        step(14, "four", Outcome::Succeeds),
    ];
    assert_eq!(steps(page).unwrap(), expected);
}

#[test]
fn a_block_that_is_neither_run_nor_marked_is_named() {
    for (page, fault) in [
        ("```\ntenure list\n```", "line 1: a block is"),
        ("\n```bash\ntenure list\n```", "line 2: a block is"),
        ("```console\ntenure list\n```", "line 2: nothing prints this"),
        ("```sh\ntenure list\n```\n```console\nattic\n```", "line 5: nothing prints this"),
        ("```console\n$ tenure list\n```\n```console\nattic\n```", "line 5: nothing prints this"),
        ("<!-- not run: -->\n```sh\nx\n```", "line 1: a mark"),
        ("<!-- not run:  -->\n```sh\nx\n```", "line 1: a mark"),
        ("<!-- not run: needs\na board -->\n```sh\nx\n```", "line 1: a mark"),
        ("<!-- not run: needs a board -->\ntext\n```sh\nx\n```", "line 2: the mark"),
        ("<!-- not run: needs a board -->\n```toml\nx = 1\n```", "line 2: a block that holds no"),
        ("<!-- not run: needs a board -->\n", "the page ends"),
        ("```sh\nx\n", "the page ends"),
    ] {
        let found = steps(page).unwrap_err();
        assert!(found.starts_with(fault), "{page:?}: {found}");
    }
}

#[test]
fn dots_of_a_page_stand_for_any_text_and_nothing_else_does() {
    for (expected, text) in [
        ("", ""),
        ("a b", "a b"),
        ("key …", "key 123"),
        ("… b …\nc", "1 b 2\nc"),
        ("…\nwarning no water\n…", "x\ny\nwarning no water\nz"),
    ] {
        assert!(matches(expected, text), "{expected:?} {text:?}");
    }
    for (expected, text) in [("", "x"), ("a", "b"), ("a", "a b"), ("a … c", "a b"), ("… b", "b c")]
    {
        assert!(!matches(expected, text), "{expected:?} {text:?}");
    }
}
