//! The last settings of a board's memory protection, so that it isn't set again to the same.

use tenure_hal::Region;

/// Regions of one function of the firmware at most.
const REGIONS_MAX: usize = 8;

/// A range of memory as memory protection sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The address of its first byte.
    pub start: usize,
    /// The address behind its last one.
    pub end: usize,
    /// Whether it is written to.
    pub is_own: bool,
    /// Whether it is executed.
    pub is_code: bool,
}

/// The program that ran last, and so may run again as everything stands.
#[derive(Debug)]
pub struct Told {
    /// The address of the memory that a program had.
    program: Option<usize>,
    /// The ranges that a function of the firmware reached, and how many they are.
    ranges: [Range; REGIONS_MAX],
    count: Option<usize>,
}

impl Told {
    /// Nothing was told.
    pub const fn nothing() -> Self {
        const NOWHERE: Range = Range { start: 0, end: 0, is_own: false, is_code: false };
        Self { program: None, ranges: [NOWHERE; REGIONS_MAX], count: None }
    }

    /// Forgets it: memory may be another's now, or nobody's.
    pub fn forget(&mut self) {
        (self.program, self.count) = (None, None);
    }

    /// Remembers the program whose memory is at `address`; gives whether it is to be told.
    #[inline(always)]
    pub fn is_news(&mut self, address: usize) -> bool {
        let is_news = self.program != Some(address);
        if is_news {
            (self.program, self.count) = (Some(address), None);
        }
        is_news
    }

    /// Remembers `regions`; gives whether they are to be told. `None` if they are too many.
    pub fn are_news(&mut self, regions: &[Region<'_>]) -> Option<bool> {
        let known = self.ranges.get(..regions.len())?;
        if self.count == Some(regions.len())
            && regions.iter().zip(known).all(|(region, known)| range_of(region) == *known)
        {
            return Some(false);
        }
        for (region, range) in regions.iter().zip(&mut self.ranges) {
            *range = range_of(region);
        }
        (self.program, self.count) = (None, Some(regions.len()));
        Some(true)
    }

    /// The ranges of the regions that were told last.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..self.count.unwrap_or_default()]
    }
}

/// Where a region begins and ends, and whose it is.
fn range_of(region: &Region<'_>) -> Range {
    let addresses = region.addresses();
    Range {
        start: addresses.start,
        end: addresses.end,
        is_own: region.is_own(),
        is_code: region.is_code(),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_was_told_last_is_no_news_until_somebody_else_ran() {
        let (mut own, readable) = ([0; 8], [0; 8]);
        let mut told = Told::nothing();
        assert!(told.is_news(16) && !told.is_news(16) && told.is_news(32));
        let mut regions = [Region::Readable(&readable), Region::Own(&mut own)];
        assert_eq!(told.are_news(&regions), Some(true));
        assert_eq!(told.are_news(&regions), Some(false));
        assert_eq!(
            told.ranges().iter().map(|range| range.is_own).collect::<Vec<_>>(),
            [false, true]
        );
        regions.reverse();
        assert_eq!(told.are_news(&regions), Some(true), "in another order they are others");
        assert_eq!(told.are_news(&regions[..1]), Some(true), "and so are fewer");
        assert!(told.is_news(32));
        assert_eq!(told.are_news(&[Region::Readable(&readable)]), Some(true));
        assert_eq!(told.are_news(&[Region::Code(&readable)]), Some(true), "it is executed now");
        told.forget();
        assert_eq!((told.are_news(&[]), told.is_news(32)), (Some(true), true));
        let many: Vec<_> = (0..=REGIONS_MAX).map(|_| Region::Readable(&readable)).collect();
        assert_eq!(told.are_news(&many), None);
    }
}
