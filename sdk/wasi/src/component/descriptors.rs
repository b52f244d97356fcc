//! Descriptors as resources have them: read and written where they stand, one range of memory at a time.

use super::streams::Streams;
use crate::descriptor::{FLAG_APPEND, Form};
use crate::directory::{Entry, name_at};
use crate::errno::Errno;
use crate::files::Files;
use crate::stdio;
use crate::user::Range;

impl Files {
    /// One more descriptor of what a descriptor is of, at its beginning.
    pub(crate) fn duplicate(&mut self, fd: u32) -> Result<u32, Errno> {
        let (node, _) = self.node_of(fd)?;
        let number = self.add(node)?;
        self.nodes.node(node)?.users += 1;
        let of = *self.descriptor(fd)?;
        let descriptor = self.descriptor(number)?;
        descriptor.flags = of.flags;
        (descriptor.may_read, descriptor.may_write) = (of.may_read, of.may_write);
        Ok(number)
    }

    /// The next name in a folder, without the dots; none behind the last.
    pub(crate) fn next_name(&mut self, fd: u32) -> Result<Option<Entry>, Errno> {
        let folder = self.folder_of(fd)?;
        let path = self.nodes.node(folder)?.path;
        let place = self.descriptor(fd)?.names_seen;
        let list = self.nodes.list(&path)?;
        let data = self.nodes.data.as_flattened().get(..list).unwrap_or_default();
        let Some(name) = name_at(data, place) else { return Ok(None) };
        let entry = Entry::of(&self.nodes, &path, name)?;
        self.descriptor(fd)?.names_seen = place + 1;
        Ok(Some(entry))
    }
}

impl Streams for Files {
    // How many bytes are left to read from where a descriptor stands.
    fn left(&mut self, fd: u32) -> Result<u32, Errno> {
        let descriptor = *self.descriptor(fd)?;
        match descriptor.form {
            Form::Input => Ok(stdio::left()),
            Form::Node => {
                let node = self.file_of(fd)?;
                if !descriptor.may_read {
                    return Err(Errno::BADF);
                }
                let length = u64::from(self.nodes.node(node)?.length);
                Ok(length.saturating_sub(descriptor.offset) as u32)
            }
            _ => Err(Errno::BADF),
        }
    }

    // Reads from where a descriptor stands.
    fn read(&mut self, fd: u32, range: Range) -> Result<u32, Errno> {
        let descriptor = *self.descriptor(fd)?;
        match descriptor.form {
            Form::Input => stdio::read(range),
            _ => {
                Streams::left(self, fd)?;
                let read =
                    self.nodes.read_range(descriptor.node.into(), range, descriptor.offset)?;
                self.descriptor(fd)?.offset += u64::from(read);
                Ok(read)
            }
        }
    }

    // Goes on by bytes that are left to read.
    fn skip(&mut self, fd: u32, bytes: u32) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        match descriptor.form {
            Form::Input => stdio::skip(bytes),
            _ => descriptor.offset += u64::from(bytes),
        }
        Ok(())
    }

    // Refuses a descriptor that can't be written to.
    fn check(&mut self, fd: u32) -> Result<(), Errno> {
        let descriptor = *self.descriptor(fd)?;
        match descriptor.form {
            Form::Output | Form::Error => Ok(()),
            Form::Node if descriptor.may_write => self.file_of(fd).map(drop),
            _ => Err(Errno::BADF),
        }
    }

    // Writes to where a descriptor stands or, where it appends, to the end.
    fn write(&mut self, fd: u32, range: Range) -> Result<u32, Errno> {
        Streams::check(self, fd)?;
        let descriptor = *self.descriptor(fd)?;
        if descriptor.form != Form::Node {
            return stdio::write(range, descriptor.form == Form::Error);
        }
        let node = usize::from(descriptor.node);
        let offset = match descriptor.flags & FLAG_APPEND {
            0 => descriptor.offset,
            _ => self.nodes.node(node)?.length.into(),
        };
        let written = self.nodes.write_range(node, range, offset)?;
        self.descriptor(fd)?.offset = offset + u64::from(written);
        if descriptor.syncs() {
            self.nodes.commit(node)?;
        }
        Ok(written)
    }
}
