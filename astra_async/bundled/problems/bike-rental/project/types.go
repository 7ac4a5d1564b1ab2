// Package rental rents out a town's bikes.
package rental

import "time"

// Category is a kind of bike; prices depend on it.
type Category string

// The categories that the town has.
const (
	City     Category = "city"
	Cargo    Category = "cargo"
	Electric Category = "electric"
)

// Bike is one bike of the fleet.
type Bike struct {
	ID       string
	Category Category
}

// Rental is a bike that a customer has.
type Rental struct {
	Number   int
	BikeID   string
	Customer string
	From     time.Time
}
