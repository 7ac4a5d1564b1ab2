//! Deposits and collections.

use crate::code::code_of;
use crate::error::StationError;
use crate::size::Size;

const FREE_DAYS: u32 = 3;
const FEE_PER_DAY: u32 = 50;
const KEPT_DAYS: u32 = 7;

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

struct Deposit {
    parcel: String,
    code: String,
    day: u32,
}

struct Locker {
    size: Size,
    holds: Option<Deposit>,
}

/// A station of lockers.
pub struct Station {
    lockers: Vec<Locker>,
    serial: u32,
}

impl Station {
    /// A station with so many lockers of each size, numbered from 1.
    pub fn new(lockers: &[(Size, usize)]) -> Station {
        let sizes = lockers.iter().flat_map(|(size, count)| vec![*size; *count]);
        Station { lockers: sizes.map(|size| Locker { size, holds: None }).collect(), serial: 0 }
    }

    /// Puts a parcel into a locker.
    pub fn deposit(&mut self, parcel: &str, size: Size, day: u32) -> Result<Receipt, StationError> {
        if parcel.trim().is_empty() {
            return Err(StationError::BlankParcel);
        }
        if self.held().any(|(_, deposit)| deposit.parcel == parcel) {
            return Err(StationError::AlreadyHere);
        }
        let free = self.lockers.iter().enumerate().filter(|(_, each)| each.holds.is_none());
        let (at, _) = free
            .filter(|(_, each)| each.size >= size)
            .min_by_key(|(at, each)| (each.size, *at))
            .ok_or(StationError::Full)?;
        self.serial += 1;
        let code = code_of(at + 1, self.serial);
        self.lockers[at].holds = Some(Deposit { parcel: parcel.to_string(), code: code.clone(), day });
        Ok(Receipt { locker: at + 1, code })
    }

    /// Opens a locker and frees it.
    pub fn collect(&mut self, code: &str, day: u32) -> Result<FetchResult, StationError> {
        let at = self.held().find(|(_, deposit)| deposit.code == code).map(|(at, _)| at);
        let deposit = at.and_then(|at| self.lockers[at].holds.take()).ok_or(StationError::WrongCode)?;
        let charged = day.saturating_sub(deposit.day).saturating_sub(FREE_DAYS);
        Ok(FetchResult { parcel: deposit.parcel, fee: charged * FEE_PER_DAY })
    }

    /// Names the parcels that have lain for more than seven days.
    pub fn expired(&self, day: u32) -> Vec<&str> {
        let mut old: Vec<_> =
            self.held().filter(|(_, deposit)| day.saturating_sub(deposit.day) > KEPT_DAYS).collect();
        old.sort_by_key(|(at, deposit)| (deposit.day, *at));
        old.into_iter().map(|(_, deposit)| deposit.parcel.as_str()).collect()
    }

    fn held(&self) -> impl Iterator<Item = (usize, &Deposit)> {
        self.lockers.iter().enumerate().filter_map(|(at, each)| Some((at, each.holds.as_ref()?)))
    }
}
