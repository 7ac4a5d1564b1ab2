//! Codes that open lockers.

/// The code for a locker and the serial number of a deposit: `007-0042`.
pub fn code_of(locker: usize, serial: u32) -> String {
    format!("{locker:03}-{serial:04}")
}
