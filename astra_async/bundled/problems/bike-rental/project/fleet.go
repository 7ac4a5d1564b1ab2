package rental

import (
	"errors"
	"time"
)

// Fleet is all bikes, free or rented.
type Fleet struct{}

// NewFleet is a fleet of these bikes, all of them free.
func NewFleet(bikes []Bike) *Fleet {
	return &Fleet{}
}

// Free is how many bikes of the category are free.
func (f *Fleet) Free(category Category) int {
	return 0
}

// Rent gives a bike of the category to the customer.
func (f *Fleet) Rent(customer string, category Category, at time.Time) (Rental, error) {
	return Rental{}, errors.New("not written yet")
}

// Return ends a rental and gives its price in cents.
func (f *Fleet) Return(number int, at time.Time) (int, error) {
	return 0, errors.New("not written yet")
}

// Overdue lists the rentals that last longer than the limit.
func (f *Fleet) Overdue(at time.Time, limit time.Duration) []Rental {
	return nil
}
