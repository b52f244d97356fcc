//! Descriptors: the numbers by which a program names open files, folders and streams, and what it may do with each.

use crate::errno::Errno;
use crate::files::Files;
use crate::node::Kind;
use crate::path::TreePath;
use crate::stdio;
use crate::user::{Range, put};

/// The most descriptors at once.
pub(crate) const DESCRIPTORS_MAX: usize = 32;
/// The first that isn't a standard stream.
const FIRST_FREE: usize = 3;

/// Rights of `rights`, as WASI numbers them.
pub(crate) const RIGHT_READ: u64 = 1 << 1;
pub(crate) const RIGHT_WRITE: u64 = 1 << 6;
/// All that can be done with a file: data and times synchronised, read, sought, flags set, told, written, advised, allocated,
/// asked for and changed in size and times, polled.
pub(crate) const FILE_RIGHTS: u64 = 0x08e0_01ff;
/// All that can be done with a folder: everything about paths but setting sizes, and reading it.
pub(crate) const FOLDER_RIGHTS: u64 = 0x07b7_fe19;
/// All that can be done with a stream.
const STREAM_RIGHTS: u64 = RIGHT_READ | RIGHT_WRITE | 1 << 3 | 1 << 21 | 1 << 27;

/// Flags of `fdflags`.
pub(crate) const FLAG_APPEND: u16 = 1;
pub(crate) const FLAG_DATA_SYNC: u16 = 2;
pub(crate) const FLAG_SYNC: u16 = 16;
/// All of them: that a file doesn't block is true of all, and what is read is always as it was written last.
pub(crate) const FLAGS: u16 = 0x1f;

/// The kinds of descriptors.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    Free,
    Input,
    Output,
    Error,
    /// A file or folder.
    Node,
}

/// One descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor {
    pub(crate) form: Form,
    /// The number of the folder that it is from the beginning, and one; 0 for others.
    pub(crate) given: u8,
    pub(crate) node: u8,
    pub(crate) flags: u16,
    pub(crate) may_read: bool,
    pub(crate) may_write: bool,
    /// Where a file is read and written next.
    pub(crate) offset: u64,
    /// How many names of a folder were handed out, of those that it has now.
    pub(crate) names_seen: u32,
    /// How many names before those were added since, less those that were removed.
    pub(crate) names_shift: i32,
}

impl Descriptor {
    const CLOSED: Self = Self {
        form: Form::Free,
        given: 0,
        node: 0,
        flags: 0,
        may_read: false,
        may_write: false,
        offset: 0,
        names_seen: 0,
        names_shift: 0,
    };

    pub(crate) fn syncs(&self) -> bool {
        self.flags & (FLAG_DATA_SYNC | FLAG_SYNC) != 0
    }
}

impl Files {
    pub(crate) fn open_streams(&mut self) {
        let forms = [Form::Input, Form::Output, Form::Error];
        for (descriptor, form) in self.descriptors.iter_mut().zip(forms) {
            descriptor.form = form;
        }
    }

    /// Opens a folder that is open from the beginning.
    pub(crate) fn open_folder(&mut self, number: u32, path: &TreePath) -> Result<(), Errno> {
        let node = self.nodes.take_up(path, None)?;
        // A folder of the settings is one, whether something is in it yet or not.
        self.nodes.node(node)?.kind = Kind::Folder;
        let descriptor = self.add(node)?;
        self.descriptor(descriptor)?.given = number as u8 + 1;
        Ok(())
    }

    /// A descriptor for a node.
    pub(crate) fn add(&mut self, node: usize) -> Result<u32, Errno> {
        let free = |descriptor: &Descriptor| descriptor.form == Form::Free;
        let later = self.descriptors.iter().skip(FIRST_FREE);
        let number = later.clone().position(free).ok_or(Errno::MFILE)? + FIRST_FREE;
        if let Some(place) = self.descriptors.get_mut(number) {
            *place = Descriptor { form: Form::Node, node: node as u8, ..Descriptor::CLOSED };
        }
        Ok(number as u32)
    }

    pub(crate) fn descriptor(&mut self, fd: u32) -> Result<&mut Descriptor, Errno> {
        let found = self.descriptors.get_mut(fd as usize);
        found.filter(|descriptor| descriptor.form != Form::Free).ok_or(Errno::BADF)
    }

    pub(crate) fn is_open(&self, fd: u32) -> bool {
        let found = self.descriptors.get(fd as usize);
        found.is_some_and(|descriptor| descriptor.form != Form::Free)
    }

    /// The node of a descriptor, and of which kind it is.
    pub(crate) fn node_of(&mut self, fd: u32) -> Result<(usize, Kind), Errno> {
        let descriptor = *self.descriptor(fd)?;
        if descriptor.form != Form::Node {
            return Err(Errno::NOTDIR);
        }
        let number = descriptor.node.into();
        Ok((number, self.nodes.node(number)?.kind))
    }

    /// The folder that a path begins at.
    pub(crate) fn folder_of(&mut self, fd: u32) -> Result<usize, Errno> {
        match self.node_of(fd)? {
            (node, Kind::Folder) => Ok(node),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The file of a descriptor.
    pub(crate) fn file_of(&mut self, fd: u32) -> Result<usize, Errno> {
        if self.descriptor(fd)?.form != Form::Node {
            return Err(Errno::SPIPE);
        }
        match self.node_of(fd)? {
            (node, Kind::File) => Ok(node),
            (_, Kind::Folder) => Err(Errno::ISDIR),
            _ => Err(Errno::BADF),
        }
    }

    pub(crate) fn close(&mut self, fd: u32) -> Result<(), Errno> {
        let descriptor = core::mem::replace(self.descriptor(fd)?, Descriptor::CLOSED);
        match descriptor.form {
            Form::Node => self.nodes.let_go(descriptor.node.into()),
            _ => Ok(()),
        }
    }

    /// Closes `to`, and makes `from` that.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        self.descriptor(from)?;
        self.descriptor(to)?;
        if from == to {
            return Ok(());
        }
        let result = self.close(to);
        let moved = core::mem::replace(self.descriptor(from)?, Descriptor::CLOSED);
        if let Some(place) = self.descriptors.get_mut(to as usize) {
            *place = Descriptor { given: 0, ..moved };
        }
        result
    }

    pub(crate) fn set_flags(&mut self, fd: u32, flags: u32) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        descriptor.flags =
            u16::try_from(flags).ok().filter(|it| it & !FLAGS == 0).ok_or(Errno::INVAL)?;
        Ok(())
    }

    /// Writes the `fdstat` of a descriptor: its file's type, its flags, its rights and those that it hands on.
    pub(crate) fn state(&mut self, fd: u32, into: u32) -> Result<(), Errno> {
        let descriptor = *self.descriptor(fd)?;
        let kind = match descriptor.form {
            Form::Node => self.node_of(fd)?.1,
            _ => return stream_state(into),
        };
        let (base, inheriting) = match kind {
            Kind::Folder => (FOLDER_RIGHTS, FOLDER_RIGHTS | FILE_RIGHTS),
            _ => {
                let reads = if descriptor.may_read { 0 } else { RIGHT_READ };
                let writes = if descriptor.may_write { 0 } else { RIGHT_WRITE };
                (FILE_RIGHTS & !reads & !writes, 0)
            }
        };
        put_state(into, file_type(kind), descriptor.flags, base, inheriting)
    }

    /// Writes the kind of a folder that is open from the beginning, and the length of its name.
    pub(crate) fn given(&mut self, fd: u32, into: u32) -> Result<(), Errno> {
        let name = self.given_name(fd)?;
        let length = (name.len() as u32).to_le_bytes();
        let mut bytes = [0; 8];
        bytes[4..].copy_from_slice(&length);
        put(into, bytes)
    }

    /// Writes the name of a folder that is open from the beginning.
    pub(crate) fn write_given_name(&mut self, fd: u32, into: u32, room: u32) -> Result<(), Errno> {
        let name = self.given_name(fd)?;
        if room < name.len() as u32 {
            return Err(Errno::NAMETOOLONG);
        }
        Range::new(into, room)?.write(name);
        Ok(())
    }

    pub(crate) fn given_name(&mut self, fd: u32) -> Result<&'static [u8], Errno> {
        let number = self.descriptor(fd)?.given.checked_sub(1).ok_or(Errno::BADF)?;
        let (name, _) = crate::settings::folder(number.into()).ok_or(Errno::BADF)?;
        Ok(name)
    }

    /// Reads from a stream or, from where it stands, from a file.
    pub(crate) fn read_next(&mut self, fd: u32, parts: u32, count: u32) -> Result<u32, Errno> {
        let descriptor = *self.descriptor(fd)?;
        match descriptor.form {
            Form::Input => crate::user::each_range(parts, count, stdio::read),
            Form::Node => {
                let read = self.read(fd, parts, count, descriptor.offset)?;
                self.descriptor(fd)?.offset += u64::from(read);
                Ok(read)
            }
            _ => Err(Errno::BADF),
        }
    }

    /// Writes to a stream or, from where it stands or at its end, to a file.
    pub(crate) fn write_next(&mut self, fd: u32, parts: u32, count: u32) -> Result<u32, Errno> {
        let descriptor = *self.descriptor(fd)?;
        let is_error = descriptor.form == Form::Error;
        match descriptor.form {
            Form::Output | Form::Error => {
                crate::user::each_range(parts, count, |range| stdio::write(range, is_error))
            }
            Form::Node => {
                let node = self.file_of(fd)?;
                let offset = match descriptor.flags & FLAG_APPEND {
                    0 => descriptor.offset,
                    _ => self.nodes.node(node)?.length.into(),
                };
                let written = self.write(fd, parts, count, offset)?;
                self.descriptor(fd)?.offset = offset + u64::from(written);
                Ok(written)
            }
            _ => Err(Errno::BADF),
        }
    }
}

/// The `fdstat` of a stream: a terminal, so that lines go out when they end.
pub(crate) fn stream_state(into: u32) -> Result<(), Errno> {
    const CHARACTER_DEVICE: u8 = 2;
    put_state(into, CHARACTER_DEVICE, 0, STREAM_RIGHTS, 0)
}

/// WASI's `filetype` of a kind of nodes.
pub(crate) fn file_type(kind: Kind) -> u8 {
    match kind {
        Kind::Missing => 0,
        Kind::Folder => 3,
        Kind::File => 4,
        Kind::Link => 7,
    }
}

fn put_state(into: u32, kind: u8, flags: u16, base: u64, inheriting: u64) -> Result<(), Errno> {
    let mut bytes = [0; 24];
    bytes[0] = kind;
    bytes[2..4].copy_from_slice(&flags.to_le_bytes());
    bytes[8..16].copy_from_slice(&base.to_le_bytes());
    bytes[16..].copy_from_slice(&inheriting.to_le_bytes());
    put(into, bytes)
}
