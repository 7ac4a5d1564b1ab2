//! What can be wrong at a station.

use std::error::Error;
use std::fmt;

/// Why a parcel was not taken or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationError {
    BlankParcel,
    AlreadyHere,
    Full,
    WrongCode,
}

impl fmt::Display for StationError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            StationError::BlankParcel => "the parcel has no name",
            StationError::AlreadyHere => "the parcel lies in a locker already",
            StationError::Full => "no locker of its size is free",
            StationError::WrongCode => "the code opens no locker",
        })
    }
}

impl Error for StationError {}
