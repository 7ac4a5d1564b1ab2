package rental

import (
	"sort"
	"strings"
	"time"
)

const mostBikes = 2

// Fleet is all bikes, free or rented.
type Fleet struct {
	bikes   []Bike
	rented  map[int]Rental
	taken   map[string]bool
	numbers int
}

// NewFleet is a fleet of these bikes, all of them free.
func NewFleet(bikes []Bike) *Fleet {
	sorted := append([]Bike{}, bikes...)
	sort.Slice(sorted, func(a, b int) bool { return sorted[a].ID < sorted[b].ID })
	return &Fleet{bikes: sorted, rented: map[int]Rental{}, taken: map[string]bool{}}
}

// Free is how many bikes of the category are free.
func (f *Fleet) Free(category Category) int {
	count := 0
	for _, bike := range f.bikes {
		if bike.Category == category && !f.taken[bike.ID] {
			count++
		}
	}
	return count
}

// Rent gives a bike of the category to the customer.
func (f *Fleet) Rent(customer string, category Category, at time.Time) (Rental, error) {
	customer = strings.TrimSpace(customer)
	if customer == "" || f.has(customer) >= mostBikes {
		return Rental{}, ErrCustomer
	}
	for _, bike := range f.bikes {
		if bike.Category == category && !f.taken[bike.ID] {
			f.numbers++
			rental := Rental{Number: f.numbers, BikeID: bike.ID, Customer: customer, From: at}
			f.rented[rental.Number] = rental
			f.taken[bike.ID] = true
			return rental, nil
		}
	}
	return Rental{}, ErrNoBike
}

// Return ends a rental and gives its price in cents.
func (f *Fleet) Return(number int, at time.Time) (int, error) {
	rental, known := f.rented[number]
	if !known {
		return 0, ErrRental
	}
	lasted := at.Sub(rental.From)
	if lasted < 0 {
		return 0, ErrDuration
	}
	minutes := int((lasted + time.Minute - 1) / time.Minute)
	cents, err := PriceCents(f.category(rental.BikeID), minutes)
	if err != nil {
		return 0, err
	}
	delete(f.rented, number)
	delete(f.taken, rental.BikeID)
	return cents, nil
}

// Overdue lists the rentals that last longer than the limit.
func (f *Fleet) Overdue(at time.Time, limit time.Duration) []Rental {
	late := []Rental{}
	for _, rental := range f.rented {
		if at.Sub(rental.From) > limit {
			late = append(late, rental)
		}
	}
	sort.Slice(late, func(a, b int) bool {
		if late[a].From.Equal(late[b].From) {
			return late[a].Number < late[b].Number
		}
		return late[a].From.Before(late[b].From)
	})
	return late
}

func (f *Fleet) has(customer string) int {
	count := 0
	for _, rental := range f.rented {
		if rental.Customer == customer {
			count++
		}
	}
	return count
}

func (f *Fleet) category(id string) Category {
	for _, bike := range f.bikes {
		if bike.ID == id {
			return bike.Category
		}
	}
	return ""
}
