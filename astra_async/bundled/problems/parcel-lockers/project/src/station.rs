//! Deposits and collections.

use crate::error::StationError;
use crate::size::Size;

/// What a deposit gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub locker: usize,
    pub code: String,
}

/// What a collection gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResult {
    pub parcel: String,
    pub fee: u32,
}

/// A station of lockers.
pub struct Station {}

impl Station {
    /// A station with so many lockers of each size, numbered from 1.
    pub fn new(_lockers: &[(Size, usize)]) -> Station {
        Station {}
    }

    /// Puts a parcel into a locker.
    pub fn deposit(&mut self, _parcel: &str, _size: Size, _day: u32) -> Result<Receipt, StationError> {
        todo!()
    }

    /// Opens a locker and frees it.
    pub fn collect(&mut self, _code: &str, _day: u32) -> Result<FetchResult, StationError> {
        todo!()
    }

    /// Names the parcels that have lain for more than seven days.
    pub fn expired(&self, _day: u32) -> Vec<&str> {
        todo!()
    }
}
