//! `image`: a container image of the hub: one static program, and the few files that it needs around it.
//!
//! Invariants:
//! - The same commit with the same compiler gives the same bytes: files have the time of the commit, and are sorted.
//! - No daemon and no other image is needed, and none is in it.

mod layer;
mod layout;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::setup;
use crate::tenure::Profile;
use crate::toolchain::STATIC_TARGET;
use crate::{files, process, toolchain};
use layer::Entry;
use layout::Image;

/// Build a container image of the hub, as an OCI layout and as a file that podman and docker load.
#[derive(clap::Args)]
#[command(
    after_help = "Example: cargo xtask image && podman load --input target/image/tenure-hub.tar"
)]
pub(crate) struct Arguments {
    /// The folder to put it in; `target/image` if it isn't said, and nowhere with --check.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Build it as tests do, in less time, have others' tools read it, and run its hub where nothing else is.
    #[arg(long)]
    check: bool,
}

/// The image's name, to which the version is added. No registry has it.
const NAME: &str = "localhost/tenure-hub";
/// The user of the process, by number: the one whom distroless images call `nonroot`.
const USER: u32 = 65_532;
/// The program in the image.
const PROGRAM: &str = "usr/local/bin/tenure";
/// The folder for a hub that keeps its records in one.
const DATA: &str = "data";
/// The ports of a hub: its own default for devices, and the one of pages that all examples have.
const PORTS: [&str; 2] = ["7369/udp", "7380/tcp"];
/// The words behind the program that say whether the hub lives, for Docker and podman.
const HEALTH: [&str; 3] = ["hub", "health", "127.0.0.1:7380"];
/// The version of everything in this repository.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let folder = arguments.output.clone();
    if arguments.check {
        return check(root, folder.as_deref());
    }
    let folder = folder.unwrap_or_else(|| toolchain::target_folder(root).join("image"));
    let made = make(root, Profile::Release, &folder)?;
    println!("image     {}", reference());
    println!("manifest  {}", made.digest);
    println!("layout    {}", made.layout.display());
    println!("file      {}", made.file.display());
    Ok(())
}

/// Builds the image as tests do, and tries it. It is left in `output`, if there is one.
fn check(root: &Path, output: Option<&Path>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let made = make(root, Profile::Debug, output.unwrap_or(folder.path()))?;
    trial::run(&made, folder.path())?;
    println!("{} is whole, and its hub answers", reference());
    Ok(())
}

/// The image's name with its version.
fn reference() -> String {
    format!("{NAME}:{VERSION}")
}

/// An image that was written.
struct Made {
    /// The digest of its manifest.
    digest: String,
    /// The folder of its OCI layout.
    layout: PathBuf,
    /// The same in one file.
    file: PathBuf,
}

fn make(root: &Path, profile: Profile, folder: &Path) -> Result<Made> {
    let program = program(root, profile)?;
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    check_static(&bytes).with_context(|| program.display().to_string())?;
    let source = Source::of(root);
    let image = Image::of(&entries(root, bytes)?, &source)?;
    let (layout, file) = (folder.join("oci"), folder.join("tenure-hub.tar"));
    image.write(&layout, &file)?;
    layout::check(&layout)?;
    Ok(Made { digest: image.digest, layout, file })
}

/// Builds the command `tenure` without what a hub doesn't need, as one static program.
fn program(root: &Path, profile: Profile) -> Result<PathBuf> {
    setup::ensure(&setup::IMAGE)?;
    let mut build = process::cargo(root);
    build.args(["build", "--quiet", "--package", "tenure-cli", "--no-default-features"]);
    build.args(["--target", STATIC_TARGET]);
    build.args((profile == Profile::Release).then_some("--release"));
    // The names of functions stay, for panics.
    build.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    // Where it was built shows in no byte.
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let places = [(Some(root.to_path_buf()), "/tenure"), (cargo, "/cargo")];
    let flags = places.into_iter().filter_map(|(place, name)| {
        place.map(|place| format!("--remap-path-prefix={}={name}", place.display()))
    });
    let flags: Vec<_> = flags.collect();
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("RUSTFLAGS");
    process::run(&mut build)?;
    let profile = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    Ok(toolchain::target_folder(root).join(STATIC_TARGET).join(profile).join("tenure"))
}

/// An error unless a program runs where there is nothing else: no loader and so no library.
fn check_static(program: &[u8]) -> Result<()> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, program)? {
        if segment.p_type(endian) == elf::PT_INTERP {
            bail!("the program isn't static: it asks for a loader");
        }
    }
    Ok(())
}

/// The files of the image.
fn entries(root: &Path, program: Vec<u8>) -> Result<Vec<Entry>> {
    let folder = |path: &str| Entry::folder(path, 0o755, 0);
    let mut entries = vec![
        Entry::folder(DATA, 0o700, USER),
        folder("etc"),
        Entry::file("etc/group", 0o644, format!("root:x:0:\ntenure:x:{USER}:\n").into()),
        Entry::file("etc/passwd", 0o644, accounts().into()),
        Entry::folder("tmp", 0o1777, 0),
        folder("usr"),
        folder("usr/local"),
        folder("usr/local/bin"),
        Entry::file(PROGRAM, 0o755, program),
        folder("usr/share"),
        folder("usr/share/doc"),
        folder("usr/share/doc/tenure"),
    ];
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = files::read(&root.join(licence))?;
        entries.push(Entry::file(&format!("usr/share/doc/tenure/{licence}"), 0o644, text.into()));
    }
    Ok(entries)
}

fn accounts() -> String {
    let nowhere = "/usr/sbin/nologin";
    format!("root:x:0:0:root:/:{nowhere}\ntenure:x:{USER}:{USER}:Tenure:/{DATA}:{nowhere}\n")
}

/// The commit that an image was made of.
struct Source {
    /// The time of the commit, in seconds since 1970 UTC; `SOURCE_DATE_EPOCH` comes before it.
    unix_s: u64,
    /// The commit, if nothing was changed since.
    revision: Option<String>,
}

impl Source {
    fn of(root: &Path) -> Self {
        let git = |words: &[&str]| {
            let text = process::quiet_capture(Command::new("git").current_dir(root).args(words));
            text.map(|text| text.trim().to_owned())
        };
        let said = std::env::var("SOURCE_DATE_EPOCH").ok();
        let unix_s = said.or_else(|| git(&["log", "-1", "--format=%ct"]));
        let is_clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
        Self {
            unix_s: unix_s.and_then(|text| text.parse().ok()).unwrap_or(0),
            revision: git(&["rev-parse", "HEAD"]).filter(|_| is_clean),
        }
    }

    /// The time as RFC 3339 has it.
    fn time(&self) -> String {
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.unix_s)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image whose program is no program.
    fn image(reversed: bool) -> Image {
        let root = crate::repository_root();
        let mut entries = entries(&root, vec![7; 100_000]).unwrap();
        if reversed {
            entries.reverse();
        }
        Image::of(&entries, &Source { unix_s: 1_700_000_000, revision: Some("abc".into()) })
            .unwrap()
    }

    fn written(image: &Image) -> (tempfile::TempDir, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        image.write(&folder.path().join("oci"), &folder.path().join("file")).unwrap();
        let file = fs::read(folder.path().join("file")).unwrap();
        (folder, file)
    }

    #[test]
    fn same_files_in_any_order_give_the_same_bytes() {
        let (one, other) = (image(false), image(true));
        assert_eq!(one.digest, other.digest);
        assert!(written(&one).1 == written(&other).1, "the files differ");
    }

    #[test]
    fn each_byte_that_changed_in_a_layout_is_found() {
        let (folder, _) = written(&image(false));
        let layout = folder.path().join("oci");
        layout::check(&layout).unwrap();
        for blob in files::with_ending(&layout.join("blobs"), &[""]).unwrap() {
            let right = fs::read(&blob).unwrap();
            let mut wrong = right.clone();
            wrong[right.len() / 2] ^= 1;
            fs::write(&blob, wrong).unwrap();
            assert!(layout::check(&layout).is_err(), "{}", blob.display());
            fs::write(&blob, right).unwrap();
        }
        layout::check(&layout).unwrap();
    }

    #[test]
    fn program_that_asks_for_a_loader_is_refused() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(check_static(&own).unwrap_err().to_string().contains("isn't static"));
    }

    #[test]
    fn files_of_deploy_name_this_image_with_its_user_its_ports_and_its_health() {
        let root = crate::repository_root();
        let read = |name: &str| files::read(&root.join("deploy").join(name)).unwrap();
        let (compose, manifests) = (read("compose/compose.yaml"), read("kubernetes/hub.yaml"));
        for text in [&compose, &manifests] {
            assert!(text.contains(&format!("image: {}\n", reference())));
            for port in PORTS {
                let (port, _) = port.split_once('/').unwrap();
                assert!(text.contains(&format!("0.0.0.0:{port}\n")), "{port}");
            }
        }
        assert!(manifests.contains(&format!("runAsUser: {USER}\n")));
        let health = format!("[CMD, /{PROGRAM}, {}]", HEALTH.join(", "));
        assert!(compose.contains(&health), "{health}");
    }
}
