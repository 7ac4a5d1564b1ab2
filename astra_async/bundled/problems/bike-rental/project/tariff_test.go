package rental

import (
	"errors"
	"testing"
)

func price(t *testing.T, category Category, minutes int) int {
	t.Helper()
	cents, err := PriceCents(category, minutes)
	if err != nil {
		t.Fatalf("%s for %d minutes: %v", category, minutes, err)
	}
	return cents
}

func TestPriceCountsBegunHalfHours(t *testing.T) {
	if got := price(t, City, 30); got != 100 {
		t.Errorf("half an hour: %d", got)
	}
	if got := price(t, City, 31); got != 200 {
		t.Errorf("31 minutes: %d", got)
	}
	if got := price(t, Cargo, 61); got != 750 {
		t.Errorf("61 minutes with a cargo bike: %d", got)
	}
	if got := price(t, Electric, 20); got != 200 {
		t.Errorf("20 minutes with an electric bike: %d", got)
	}
}

func TestTheFirstFiveMinutesAreFree(t *testing.T) {
	if got := price(t, Cargo, 5); got != 0 {
		t.Errorf("5 minutes: %d", got)
	}
	if got := price(t, Cargo, 6); got != 250 {
		t.Errorf("6 minutes: %d", got)
	}
	if got := price(t, Electric, 0); got != 0 {
		t.Errorf("no time at all: %d", got)
	}
}

func TestADayCostsAtMostEightHalfHours(t *testing.T) {
	if got := price(t, City, 600); got != 800 {
		t.Errorf("10 hours: %d", got)
	}
	if got := price(t, City, 1440); got != 800 {
		t.Errorf("24 hours: %d", got)
	}
	if got := price(t, City, 1500); got != 1000 {
		t.Errorf("25 hours: %d", got)
	}
	if got := price(t, Electric, 2880); got != 3200 {
		t.Errorf("48 hours: %d", got)
	}
}

func TestPriceRefusesWhatIsNoRental(t *testing.T) {
	if got, err := PriceCents(City, -1); !errors.Is(err, ErrDuration) || got != 0 {
		t.Errorf("a negative time: %d, %v", got, err)
	}
	if _, err := PriceCents("boat", 10); !errors.Is(err, ErrCategory) {
		t.Errorf("a boat: %v", err)
	}
	if _, err := PriceCents("boat", 0); !errors.Is(err, ErrCategory) {
		t.Errorf("a boat for no time: %v", err)
	}
}
