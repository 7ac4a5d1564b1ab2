//! A station of parcel lockers.

pub mod code;
pub mod error;
pub mod size;
pub mod station;

pub use error::StationError;
pub use size::{fitting, Size};
pub use station::{FetchResult, Receipt, Station};
