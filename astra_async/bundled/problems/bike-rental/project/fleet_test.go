package rental

import (
	"errors"
	"testing"
	"time"
)

var noon = time.Date(2024, 5, 4, 12, 0, 0, 0, time.UTC)

func fleet() *Fleet {
	return NewFleet([]Bike{
		{ID: "c3", Category: City},
		{ID: "c1", Category: City},
		{ID: "e1", Category: Electric},
		{ID: "c2", Category: City},
	})
}

func TestRentTakesTheFreeBikeWithTheSmallestID(t *testing.T) {
	f := fleet()
	first, err := f.Rent("Ada", City, noon)
	if err != nil {
		t.Fatal(err)
	}
	if first.BikeID != "c1" {
		t.Errorf("the first bike: %s", first.BikeID)
	}
	second, _ := f.Rent(" Bob ", City, noon)
	if second.BikeID != "c2" {
		t.Errorf("the second bike: %s", second.BikeID)
	}
	if second.Number != 2 {
		t.Errorf("the second number: %d", second.Number)
	}
	if second.Customer != "Bob" {
		t.Errorf("the second customer: %q", second.Customer)
	}
	if got := f.Free(City); got != 1 {
		t.Errorf("free city bikes: %d", got)
	}
	if _, err := f.Rent("Cleo", Cargo, noon); !errors.Is(err, ErrNoBike) {
		t.Errorf("a bike that the town does not have: %v", err)
	}
}

func TestRentRefusesBlankCustomersAndAThirdBike(t *testing.T) {
	f := fleet()
	if _, err := f.Rent("  ", City, noon); !errors.Is(err, ErrCustomer) {
		t.Errorf("nobody: %v", err)
	}
	f.Rent("Ada", City, noon)
	f.Rent("Ada ", City, noon)
	if _, err := f.Rent("Ada", Electric, noon); !errors.Is(err, ErrCustomer) {
		t.Errorf("a third bike: %v", err)
	}
	if got := f.Free(Electric); got != 1 {
		t.Errorf("free electric bikes: %d", got)
	}
	if next, _ := f.Rent("Bob", Electric, noon); next.Number != 3 {
		t.Errorf("the next number: %d", next.Number)
	}
}

func TestReturnChargesAndFreesTheBike(t *testing.T) {
	f := fleet()
	rented, _ := f.Rent("Ada", City, noon)
	if _, err := f.Return(rented.Number, noon.Add(-time.Minute)); !errors.Is(err, ErrDuration) {
		t.Errorf("before the rental: %v", err)
	}
	if got := f.Free(City); got != 2 {
		t.Errorf("free city bikes while it is rented: %d", got)
	}
	cents, err := f.Return(rented.Number, noon.Add(30*time.Minute+time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if cents != 200 {
		t.Errorf("30 minutes and a second: %d", cents)
	}
	if got := f.Free(City); got != 3 {
		t.Errorf("free city bikes: %d", got)
	}
	if _, err := f.Return(rented.Number, noon.Add(time.Hour)); !errors.Is(err, ErrRental) {
		t.Errorf("returned twice: %v", err)
	}
}

func TestOverdueListsTheOldestRentalsFirst(t *testing.T) {
	f := fleet()
	f.Rent("Ada", City, noon.Add(time.Hour))
	f.Rent("Bob", City, noon)
	f.Rent("Cleo", Electric, noon)
	f.Rent("Dan", City, noon.Add(2*time.Hour))
	late := f.Overdue(noon.Add(3*time.Hour), time.Hour)
	if len(late) != 3 {
		t.Fatalf("overdue: %v", late)
	}
	if late[0].Customer != "Bob" {
		t.Errorf("the first: %s", late[0].Customer)
	}
	if late[1].Customer != "Cleo" {
		t.Errorf("the second: %s", late[1].Customer)
	}
	if late[2].Customer != "Ada" {
		t.Errorf("the third: %s", late[2].Customer)
	}
}
