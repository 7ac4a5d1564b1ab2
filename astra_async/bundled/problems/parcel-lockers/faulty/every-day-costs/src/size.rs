//! Sizes of lockers, and which of them a parcel needs.

/// A size of lockers, the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    Small,
    Medium,
    Large,
}

/// Inner lengths in ascending order.
const INSIDE: [(Size, [u32; 3]); 3] = [
    (Size::Small, [80, 250, 400]),
    (Size::Medium, [180, 250, 400]),
    (Size::Large, [380, 400, 450]),
];

/// The smallest size into which a parcel of these lengths fits, turned any way round.
pub fn fitting(width: u32, height: u32, depth: u32) -> Option<Size> {
    let mut sides = [width, height, depth];
    sides.sort_unstable();
    if sides[0] == 0 {
        return None;
    }
    INSIDE
        .iter()
        .find(|(_, inside)| sides.iter().zip(inside).all(|(side, room)| side <= room))
        .map(|(size, _)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_size_that_fits_is_chosen() {
        assert_eq!(fitting(80, 250, 400), Some(Size::Small));
        assert_eq!(fitting(81, 250, 400), Some(Size::Medium));
        assert_eq!(fitting(200, 300, 400), Some(Size::Large));
        assert_eq!(fitting(381, 400, 450), None);
        assert_eq!(fitting(0, 10, 10), None);
    }

    #[test]
    fn a_parcel_may_be_turned() {
        assert_eq!(fitting(400, 80, 250), Some(Size::Small));
        assert_eq!(fitting(250, 400, 180), Some(Size::Medium));
        assert_eq!(fitting(450, 380, 400), Some(Size::Large));
    }
}
