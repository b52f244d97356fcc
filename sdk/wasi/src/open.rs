//! `path_open`.

use crate::clock;
use crate::descriptor::{FLAGS, RIGHT_READ, RIGHT_WRITE};
use crate::errno::Errno;
use crate::files::Files;
use crate::node::{Kind, Node, remove};
use crate::resolve::{FOLLOW, Target};
use crate::tree;

/// The bits of `oflags`.
const CREATE: u32 = 1;
const FOLDER: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

/// How something is to be opened.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) lookup: u32,
    pub(crate) open: u32,
    pub(crate) rights: u64,
    pub(crate) flags: u32,
}

impl Manner {
    fn has(self, flag: u32) -> bool {
        self.open & flag != 0
    }
}

impl Files {
    /// Opens what the path leads to; returns its descriptor.
    pub(crate) fn open(
        &mut self,
        fd: u32,
        address: u32,
        length: u32,
        manner: Manner,
    ) -> Result<u32, Errno> {
        let flags = u16::try_from(manner.flags).ok().filter(|flags| flags & !FLAGS == 0);
        let flags = flags.ok_or(Errno::INVAL)?;
        if manner.has(FOLDER) && (manner.has(CREATE) || manner.has(TRUNCATE)) {
            return Err(Errno::INVAL);
        }
        let follows = manner.lookup & FOLLOW != 0 && !(manner.has(CREATE) && manner.has(EXCLUSIVE));
        let target = self.resolve(fd, address, length, follows)?;
        let (kind, found) = self.nodes.look(&target)?;
        let found = match kind {
            Kind::Missing => Some(self.create(&target, manner, found)?),
            _ if manner.has(CREATE) && manner.has(EXCLUSIVE) => return Err(Errno::EXIST),
            Kind::Link if manner.has(FOLDER) => return Err(Errno::NOTDIR),
            Kind::Link => return Err(Errno::LOOP),
            Kind::File if manner.has(FOLDER) || target.is_folder => return Err(Errno::NOTDIR),
            Kind::Folder
                if manner.has(CREATE)
                    || manner.has(TRUNCATE)
                    || manner.rights & RIGHT_WRITE != 0 =>
            {
                return Err(Errno::ISDIR);
            }
            Kind::File | Kind::Folder => found,
        };
        let node = self.nodes.take_up(&target.path, found)?;
        let opened = self.open_taken_up(node, manner, flags);
        if opened.is_err() {
            let _ = self.nodes.let_go(node);
        }
        opened
    }

    fn open_taken_up(&mut self, node: usize, manner: Manner, flags: u16) -> Result<u32, Errno> {
        if manner.has(TRUNCATE) {
            self.nodes.set_length(node, 0)?;
        }
        let number = self.add(node)?;
        let descriptor = self.descriptor(number)?;
        descriptor.flags = flags;
        descriptor.may_read = manner.rights & RIGHT_READ != 0;
        descriptor.may_write = manner.rights & RIGHT_WRITE != 0;
        Ok(number)
    }

    /// Makes an empty file, which is there at once.
    fn create(
        &mut self,
        target: &Target,
        manner: Manner,
        found: Option<Node>,
    ) -> Result<Node, Errno> {
        if !manner.has(CREATE) {
            return Err(Errno::NOENT);
        }
        if target.is_folder {
            return Err(Errno::ISDIR);
        }
        self.nodes.check_parent(&target.path)?;
        if let Some(rest) = found {
            // A power cut left it of a file that was removed.
            remove(&rest)?;
        }
        tree::set(&target.path, &[])?;
        self.note_name(&target.path, 1)?;
        let now = clock::unix_time().unwrap_or(0);
        Ok(Node { accessed: now, modified: now, ..Node::read(&target.path)? })
    }
}
