//! The open files: descriptors, nodes, and the pages that hold parts of files.

use crate::descriptor::{DESCRIPTORS_MAX, Descriptor};
use crate::errno::Errno;
use crate::layout::FILES_BYTES;
use crate::node::LINK_BYTES_MAX;
use crate::nodes::{LINKS, MOVING, Nodes, ORPHANS, own};
use crate::path::TreePath;
use crate::settings;
use crate::tree;

/// The longest path that a program writes, with what links in it stand for.
pub(crate) const WRITTEN_BYTES_MAX: usize = 512;

#[link(wasm_import_module = "merger")]
unsafe extern "C" {
    /// Where the room for open files is.
    safe fn files() -> u32;
}

/// All that is known of open files. Zero bytes are a state of it: nothing is open.
pub(crate) struct Files {
    pub(crate) descriptors: [Descriptor; DESCRIPTORS_MAX],
    pub(crate) nodes: Nodes,
    /// The path that is being resolved.
    pub(crate) written: [u8; WRITTEN_BYTES_MAX],
    /// The text of a link.
    pub(crate) link: [u8; 1 + LINK_BYTES_MAX],
    /// Whether the tree has links.
    pub(crate) has_links: bool,
}

const _: () = assert!(size_of::<Files>() <= FILES_BYTES as usize);

impl Files {
    /// The open files.
    pub(crate) fn current() -> &'static mut Self {
        // SAFETY: the room is there, aligned, and of zeros until `begin`. Each function of WASI asks once, and hands it on.
        unsafe { &mut *(files() as *mut Self) }
    }

    /// As a program finds them when it begins: standard streams and folders are open. What a program before it began is
    /// brought to its end.
    pub(crate) fn begin(&mut self) {
        // SAFETY: zero bytes are a state.
        unsafe { core::ptr::write_bytes(self, 0, 1) };
        self.open_streams();
        let mut number = 0;
        while let Some((_, place)) = settings::folder(number) {
            let opened = TreePath::new(place).and_then(|path| self.open_folder(number, &path));
            if opened.is_err() {
                break;
            }
            number += 1;
        }
        // Each write of the rest is tried again at the next beginning.
        let _ = self.tidy();
    }

    fn tidy(&mut self) -> Result<(), Errno> {
        let mut list = [0; 64];
        let length = tree::list(&TreePath::ROOT.besides()?, &mut list)?;
        let (mut is_moving, mut has_orphans) = (false, false);
        for name in tree::names(list.get(..length).unwrap_or_default()) {
            self.has_links |= name == LINKS;
            is_moving |= name == MOVING;
            has_orphans |= name == ORPHANS;
        }
        if is_moving {
            self.nodes.finish_moving()?;
        }
        if has_orphans {
            tree::delete(&own(ORPHANS)?)?;
        }
        Ok(())
    }

    /// Notes that the tree has links from now on, so that paths are looked through for them.
    pub(crate) fn note_links(&mut self) -> Result<(), Errno> {
        if !self.has_links {
            tree::set_bytes(&own(LINKS)?, &[])?;
            self.has_links = true;
        }
        Ok(())
    }
}
