//! An image tried: other makers' tools read it, and its hub answers where there is nothing but the image's files.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use tar::Archive;
use tenure_testbed::{find_server, free_ipv4_address};

use super::layout::check;
use super::{DATA, HEALTH, Made, PROGRAM, USER, VERSION, reference};
use crate::demo::Player;
use crate::process;

/// Reads the image by others' tools, unpacks it into `folder`, and runs its hub.
pub(super) fn run(made: &Made, folder: &Path) -> Result<()> {
    read_by_skopeo(made, folder)?;
    let (archive, configuration) = check(&made.layout)?;
    let root = folder.join("root");
    let mut archive = Archive::new(&archive[..]);
    let is_root =
        process::quiet_capture(Command::new("id").arg("-u")).is_some_and(|user| user.trim() == "0");
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(is_root);
    archive.unpack(&root).context("cannot unpack the layer")?;
    let config = configuration.config().as_ref().context("the image says nothing of a process")?;
    let entry = config.entrypoint().clone().unwrap_or_default();
    ensure!(entry == [format!("/{PROGRAM}"), "hub".into()], "another entrypoint: {entry:?}");
    // Nothing else is reachable there, as in a container. Without the right to that it runs beside other files.
    let chroot = find_server("chroot").filter(|_| is_root);
    let command = |words: &[&str]| {
        let mut command = match &chroot {
            Some(chroot) => {
                let mut command = Command::new(chroot);
                command.arg(format!("--userspec={USER}:{USER}")).arg(&root).arg(&entry[0]);
                command
            }
            None => Command::new(root.join(PROGRAM)),
        };
        command.args(words).env_clear();
        command
    };
    let data = match chroot {
        Some(_) => format!("/{DATA}/hub"),
        None => root.join(DATA).join("hub").display().to_string(),
    };
    let pages = free_ipv4_address();
    let words = ["hub", "--open", "--data", &data, "--listen", "127.0.0.1:0", "--pages", &pages];
    let _hub = Player::start_silent(&mut command(&words), "the hub in the image")?;
    let health = [&HEALTH[..2], &[pages.as_str()]].concat();
    for (more, expected) in [(None, "alive\n"), (Some("--ready"), "ready\n")] {
        let words: Vec<&str> = health.iter().copied().chain(more).collect();
        let said = process::capture(&mut command(&words))?;
        ensure!(said == expected, "the hub in the image says of itself: {said}");
    }
    Ok(())
}

/// skopeo copies the layout, each blob by its digest, and reads the file as Docker's.
fn read_by_skopeo(made: &Made, folder: &Path) -> Result<()> {
    if process::find_program("skopeo").is_none() {
        println!("skopeo isn't here, and doesn't read the image");
        return Ok(());
    }
    let layout = format!("oci:{}:{VERSION}", made.layout.display());
    let copy = format!("dir:{}", folder.join("copy").display());
    process::run(
        Command::new("skopeo")
            .args(["--insecure-policy", "copy", "--quiet"])
            .args([&layout, &copy]),
    )?;
    let file = format!("docker-archive:{}:{}", made.file.display(), reference());
    for from in [layout, file] {
        let read = process::capture(Command::new("skopeo").args(["inspect", "--config", &from]))?;
        let read: serde_json::Value = serde_json::from_str(&read)?;
        let user = &read["config"]["User"];
        if *user != format!("{USER}:{USER}") {
            bail!("skopeo reads the user {user} from {from}");
        }
    }
    Ok(())
}
