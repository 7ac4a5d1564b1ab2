use lockers::{Size, Station, StationError};

fn station() -> Station {
    Station::new(&[(Size::Large, 1), (Size::Small, 2), (Size::Medium, 1)])
}

#[test]
fn a_parcel_gets_the_first_free_locker_of_its_size() {
    let mut station = station();
    let first = station.deposit("hat", Size::Small, 1).unwrap();
    assert_eq!(first.locker, 2);
    assert_eq!(first.code, "002-0001");
    let second = station.deposit("book", Size::Small, 1).unwrap();
    assert_eq!(second.locker, 3);
    assert_eq!(second.code, "003-0002");
}

#[test]
fn a_larger_locker_is_taken_where_none_of_the_size_is_free() {
    let mut station = station();
    station.deposit("hat", Size::Small, 1).unwrap();
    station.deposit("book", Size::Small, 1).unwrap();
    assert_eq!(station.deposit("cup", Size::Small, 1).unwrap().locker, 4);
    assert_eq!(station.deposit("pen", Size::Small, 1).unwrap().locker, 1);
    assert_eq!(station.deposit("cap", Size::Small, 1), Err(StationError::Full));
}

#[test]
fn a_deposit_that_is_not_possible_changes_nothing() {
    let mut station = station();
    assert_eq!(station.deposit("  ", Size::Small, 1), Err(StationError::BlankParcel));
    station.deposit("vase", Size::Large, 1).unwrap();
    assert_eq!(station.deposit("vase", Size::Large, 2), Err(StationError::AlreadyHere));
    assert_eq!(station.deposit("lamp", Size::Large, 2), Err(StationError::Full));
    assert_eq!(station.deposit("lamp", Size::Medium, 2).unwrap().code, "004-0002");
}

#[test]
fn three_days_are_free_and_each_further_one_costs() {
    let mut station = Station::new(&[(Size::Small, 4)]);
    let code = |station: &mut Station, name: &str| station.deposit(name, Size::Small, 10).unwrap().code;
    let (a, b, c) = (code(&mut station, "a"), code(&mut station, "b"), code(&mut station, "c"));
    assert_eq!(station.collect(&a, 13).unwrap().fee, 0);
    assert_eq!(station.collect(&b, 14).unwrap().fee, 50);
    assert_eq!(station.collect(&c, 20).unwrap().fee, 350);
    let d = code(&mut station, "d");
    assert_eq!(station.collect(&d, 9).unwrap().fee, 0);
}

#[test]
fn a_collected_locker_is_free_again() {
    let mut station = Station::new(&[(Size::Medium, 1)]);
    let code = station.deposit("hat", Size::Medium, 1).unwrap().code;
    assert_eq!(station.collect("001-0009", 2), Err(StationError::WrongCode));
    assert_eq!(station.collect(&code, 2).unwrap().parcel, "hat");
    assert_eq!(station.collect(&code, 2), Err(StationError::WrongCode));
    assert_eq!(station.deposit("hat", Size::Small, 2).unwrap().code, "001-0002");
}

#[test]
fn expired_parcels_are_listed_by_age() {
    let mut station = Station::new(&[(Size::Small, 4)]);
    for (name, day) in [("late", 5), ("first", 1), ("second", 1), ("new", 9)] {
        station.deposit(name, Size::Small, day).unwrap();
    }
    assert_eq!(station.expired(8).len(), 0);
    assert_eq!(station.expired(9).join(" "), "first second");
    assert_eq!(station.expired(13).join(" "), "first second late");
}
