//! Zig projects: which compiler makes a module of them, and how it is linked.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::make::fence;
use crate::make::project::name_of;
use crate::make::project_file::ProjectFile;
use crate::make::registry_tools::zig;
use crate::make::sdk;
use crate::make::toolchain::{Linker, command};

/// The file that a project begins with, unless `sources` says otherwise.
const SOURCE: &str = "src/main.zig";
/// The object file that Zig writes for the linker.
const OBJECT: &str = "target/zig/main.o";

/// Compiles a Zig project; gives the module's path, and whether its memory is as small as can be.
pub(crate) fn compile(folder: &Path, project: &ProjectFile) -> anyhow::Result<(PathBuf, bool)> {
    fence::made_folder(folder, "target/zig")?;
    let wasm = fence::module_to_make(folder, project.name.as_str())?;
    // Zig's own linker makes memories of whole pages of 64 KiB.
    let linker = Linker::find().filter(|linker| linker.exact_memory && project.wasi.is_none());
    let mut zig = zig()?;
    zig.current_dir(folder);
    let stack = project.build.stack_bytes.next_multiple_of(16).to_string();
    match (&linker, &project.wasi) {
        (Some(_), _) => {
            zig.args(["build-obj", "-target", "wasm32-freestanding", "-fcompiler-rt"]);
            zig.arg(format!("-femit-bin={OBJECT}"));
        }
        (None, None) => {
            zig.args(["build-exe", "-target", "wasm32-freestanding", "-fno-entry", "-rdynamic"]);
            zig.args(["--stack", &stack]).arg(format!("-femit-bin={wasm}"));
        }
        (None, Some(_)) => {
            zig.args(["build-exe", "-target", "wasm32-wasi", "--stack", &stack]);
            zig.arg(format!("-femit-bin={wasm}"));
        }
    }
    zig.args(["-OReleaseSmall", "-fno-strip", "--cache-dir", "target/zig/cache"]);
    zig.args(&project.build.flags).args(["--dep", "tenure"]);
    let source = project.build.sources.first().map_or(Path::new(SOURCE), PathBuf::as_path);
    fence::file(folder, source)?;
    zig.arg(format!("-Mroot={}", source.display()));
    zig.arg(format!("-Mtenure={}/zig/tenure.zig", sdk::FOLDER));
    run(&mut zig, "compile", folder, "zig")?;
    if let Some(linker) = &linker {
        let mut command = command(&linker.program);
        command.current_dir(folder).args(["--no-entry", "--export-dynamic", "--gc-sections"]);
        command.args(project.link_arguments(true)).args([OBJECT, "-o", &wasm]);
        run(&mut command, "link", folder, "the linker")?;
    }
    Ok((folder.join(wasm), linker.is_some()))
}

fn run(command: &mut Command, what: &str, folder: &Path, tool: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("can't run {tool}"))?;
    if !status.success() {
        bail!("{} doesn't {what}; see what {tool} says above", name_of(folder));
    }
    Ok(())
}
