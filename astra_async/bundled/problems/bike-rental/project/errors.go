package rental

import "errors"

// What can be wrong with a rental.
var (
	ErrCategory = errors.New("unknown category")
	ErrCustomer = errors.New("no customer, or one with two bikes")
	ErrDuration = errors.New("a rental cannot end before it begins")
	ErrNoBike   = errors.New("no bike of this category is free")
	ErrRental   = errors.New("no such rental")
)
