//! `docs`: the documentation as a book (mdBook), with the API's pages beside it.
//!
//! The pages lie in the repository where they belong, some beside code; `docs/SUMMARY.md` puts them in order, and
//! pages of `docs` that it doesn't name, such as new decisions, come last.
//! They are copied to `target/book/src` with the same places to one another, so that their links hold. A link
//! to what is no page of the book, such as a source file, becomes plain text there, and a `README.md` is called
//! `index.md`, as mdBook wants it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report::Verdict;
use crate::{files, process, toolchain};

/// Build the documentation as a book, with the API's pages beside it.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask docs && xdg-open target/book/html/index.html")]
pub(crate) struct Arguments {
    /// Only the book, without the API's pages.
    #[arg(long)]
    no_api: bool,
}

/// The order of the pages.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The files that pages show beside text.
const PICTURES: [&str; 2] = [".svg", ".png"];
const README: &str = "README.md";
const INDEX: &str = "index.md";

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let book = assemble(root)?;
    if process::find_program("mdbook").is_none() {
        bail!("the pages are in {}, but mdBook is missing: cargo install mdbook", book.display());
    }
    process::run(Command::new("mdbook").arg("build").arg(&book))?;
    check_links(&book.join("html"))?;
    if !arguments.no_api {
        let mut rustdoc = process::cargo(root);
        rustdoc
            .args(["doc", "--workspace", "--lib", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings");
        process::run(&mut rustdoc)?;
        let api = toolchain::target_folder(root).join("doc");
        copy_folder(&api, &book.join("html/api"))?;
    }
    println!("{}", book.join("html/index.html").display());
    Ok(())
}

/// Every entry of the summary is a page.
pub(crate) fn check(root: &Path) -> Result<Verdict> {
    let pages = summary_pages(&files::read(&root.join(SUMMARY))?);
    let missing = pages.iter().filter(|page| !root.join(page).is_file());
    let faults: Vec<_> = missing.map(|page| format!("{} does not exist", page.display())).collect();
    if !faults.is_empty() {
        bail!("{SUMMARY}:\n  {}", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

/// The pages that the summary names, by their paths in the repository.
fn summary_pages(summary: &str) -> BTreeSet<PathBuf> {
    let targets = summary.lines().flat_map(targets);
    targets.map(|target| joined(Path::new(SUMMARY), target)).collect()
}

/// The pages of `docs` that the summary doesn't name, with their titles.
fn further_pages(root: &Path, named: &BTreeSet<PathBuf>) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for file in files::with_ending(&root.join("docs"), &[".md"])? {
        let page = file.strip_prefix(root)?.to_path_buf();
        if page != Path::new(SUMMARY) && !named.contains(&page) {
            let text = files::read(&file)?;
            let title = text.lines().find_map(|line| line.strip_prefix("# "));
            found.push((page, title.unwrap_or("Untitled").to_owned()));
        }
    }
    Ok(found)
}

/// Copies everything that mdBook reads to `target/book`, which it returns.
fn assemble(root: &Path) -> Result<PathBuf> {
    let book = toolchain::target_folder(root).join("book");
    let source = book.join("src");
    if source.exists() {
        std::fs::remove_dir_all(&source).context("cannot remove the last book")?;
    }
    let summary = files::read(&root.join(SUMMARY))?;
    let mut pages = summary_pages(&summary);
    let mut summary = seen_from_root(&summary);
    let further = further_pages(root, &pages)?;
    if !further.is_empty() {
        summary += "\n# Further pages\n\n";
    }
    for (page, title) in further {
        summary += &format!("- [{title}]({})\n", page.display());
        pages.insert(page);
    }
    for page in &pages {
        let text = files::read(&root.join(page))?;
        write(&source.join(in_book(page)), &with_links_inwards(&text, page, &pages))?;
    }
    write(&source.join("SUMMARY.md"), &summary)?;
    for picture in files::with_ending(&root.join("docs"), &PICTURES)? {
        let to = source.join(picture.strip_prefix(root)?);
        std::fs::copy(&picture, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    write(&book.join("book.toml"), &files::read(&root.join("docs/book.toml"))?)?;
    Ok(book)
}

fn write(file: &Path, text: &str) -> Result<()> {
    let what = || format!("cannot write {}", file.display());
    std::fs::create_dir_all(file.parent().unwrap_or(file)).with_context(what)?;
    std::fs::write(file, text).with_context(what)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?
    {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else {
            std::fs::copy(entry.path(), &copy)
                .with_context(|| format!("cannot write {}", copy.display()))?;
        }
    }
    Ok(())
}

/// The targets of the links `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// `target`, as written in the file `from`, from the repository's root on.
fn joined(from: &Path, target: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            _ => path.push(part),
        }
    }
    path
}

/// The summary as mdBook wants it, at the root of all pages.
fn seen_from_root(summary: &str) -> String {
    let mut text = summary.to_owned();
    for target in summary.lines().flat_map(targets) {
        let page = joined(Path::new(SUMMARY), target);
        let page = in_book(&page);
        text = text.replace(&format!("]({target})"), &format!("]({})", page.display()));
    }
    text
}

/// The place of a page in the book.
fn in_book(page: &Path) -> PathBuf {
    if page.ends_with(README) { page.with_file_name(INDEX) } else { page.to_path_buf() }
}

/// The text of `page` with links for the book: those to what isn't in it are plain text.
fn with_links_inwards(text: &str, page: &Path, pages: &BTreeSet<PathBuf>) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        let found: Vec<_> = targets(&line).map(str::to_owned).collect();
        for target in found {
            let end = format!("]({target})");
            let Some(at) = line.find(&end) else { continue };
            if is_inside(&target, page, pages) {
                let to =
                    if target.contains("://") { end.clone() } else { end.replace(README, INDEX) };
                line.replace_range(at..at + end.len(), &to);
            } else if let Some(start) = line[..at].rfind('[') {
                line.replace_range(at..at + end.len(), "");
                line.remove(start);
            }
        }
        kept += &line;
    }
    kept
}

/// Every link within the finished book leads to a file.
fn check_links(html: &Path) -> Result<()> {
    let mut dead = Vec::new();
    for page in files::with_ending(html, &[".html"])? {
        let text = files::read(&page)?;
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let inside = links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        for link in inside {
            let path = link.split('#').next().unwrap_or_default();
            // The page for whatever isn't found is served from any folder.
            if !path.is_empty()
                && !page.ends_with("404.html")
                && !page.with_file_name(path).exists()
            {
                dead.push(format!("{}: {link}", files::shown(&page, html)));
            }
        }
    }
    if !dead.is_empty() {
        bail!("links of the book lead nowhere:\n  {}", dead.join("\n  "));
    }
    Ok(())
}

fn is_inside(target: &str, page: &Path, pages: &BTreeSet<PathBuf>) -> bool {
    let path = target.split(['#', ' ']).next().unwrap_or_default();
    let is_picture = PICTURES.iter().any(|ending| path.ends_with(ending));
    path.is_empty() || path.contains("://") || is_picture || pages.contains(&joined(page, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_what_is_no_page_become_text() {
        let pages = BTreeSet::from(["docs/guide.md".into(), "README.md".into()]);
        let text = "See [the guide](guide.md#keys), [examples](../examples), [top](../README.md),\n\
                    [here](#keys), [there](https://a.example/b) and ![waits](waits.svg).\n";
        let expected = "See [the guide](guide.md#keys), examples, [top](../index.md),\n\
                        [here](#keys), [there](https://a.example/b) and ![waits](waits.svg).\n";
        assert_eq!(with_links_inwards(text, Path::new("docs/owners.md"), &pages), expected);
    }

    #[test]
    fn the_summary_is_seen_from_the_root() {
        let summary = "[Tenure](../README.md)\n- [Guide](guide.md)\n  - [One](adr/1.md)\n";
        let expected = "[Tenure](index.md)\n- [Guide](docs/guide.md)\n  - [One](docs/adr/1.md)\n";
        assert_eq!(seen_from_root(summary), expected);
    }
}
