//! Open files read, written, sought, made longer and shorter.

use crate::errno::Errno;
use crate::files::Files;
use crate::node::FILE_BYTES_MAX;
use crate::user::each_range;

const FROM_START: u32 = 0;
const FROM_HERE: u32 = 1;
const FROM_END: u32 = 2;

impl Files {
    /// Reads from a file, from `offset` on.
    pub(crate) fn read(
        &mut self,
        fd: u32,
        parts: u32,
        count: u32,
        offset: u64,
    ) -> Result<u32, Errno> {
        let node = self.file_of(fd)?;
        if !self.descriptor(fd)?.may_read {
            return Err(Errno::BADF);
        }
        let mut offset = offset;
        each_range(parts, count, |range| {
            let read = self.nodes.read_range(node, range, offset)?;
            offset += u64::from(read);
            Ok(read)
        })
    }

    /// Writes to a file, from `offset` on.
    pub(crate) fn write(
        &mut self,
        fd: u32,
        parts: u32,
        count: u32,
        offset: u64,
    ) -> Result<u32, Errno> {
        let node = self.file_of(fd)?;
        let descriptor = *self.descriptor(fd)?;
        if !descriptor.may_write {
            return Err(Errno::BADF);
        }
        let mut offset = offset;
        let written = each_range(parts, count, |range| {
            let written = self.nodes.write_range(node, range, offset)?;
            offset += u64::from(written);
            Ok(written)
        })?;
        if descriptor.syncs() {
            self.nodes.commit(node)?;
        }
        Ok(written)
    }

    /// Moves to another place in a file; returns it.
    pub(crate) fn seek(&mut self, fd: u32, by: i64, from: u32) -> Result<u64, Errno> {
        let node = self.file_of(fd)?;
        let length = self.nodes.node(node)?.length;
        let descriptor = self.descriptor(fd)?;
        let from = match from {
            FROM_START => 0,
            FROM_HERE => descriptor.offset,
            FROM_END => length.into(),
            _ => return Err(Errno::INVAL),
        };
        descriptor.offset = from.checked_add_signed(by).ok_or(Errno::INVAL)?;
        Ok(descriptor.offset)
    }

    /// The place in a file.
    pub(crate) fn tell(&mut self, fd: u32) -> Result<u64, Errno> {
        self.file_of(fd)?;
        Ok(self.descriptor(fd)?.offset)
    }

    /// Makes a file that long; what is new of it is zeros.
    pub(crate) fn resize(&mut self, fd: u32, size: u64) -> Result<(), Errno> {
        let node = self.file_of(fd)?;
        if !self.descriptor(fd)?.may_write {
            return Err(Errno::BADF);
        }
        let size = u32::try_from(size).ok().filter(|size| *size <= FILE_BYTES_MAX);
        self.nodes.set_length(node, size.ok_or(Errno::FBIG)?)
    }

    /// Brings what was written to a file into force.
    pub(crate) fn sync(&mut self, fd: u32) -> Result<(), Errno> {
        let (node, _) = self.node_of(fd).map_err(|error| match error {
            Errno::NOTDIR => Errno::INVAL,
            error => error,
        })?;
        self.nodes.commit(node)
    }
}
