package rental

const (
	freeMinutes = 5
	halfHour    = 30
	day         = 24 * 60
	mostADay    = 8
)

var halfHourCents = map[Category]int{City: 100, Cargo: 250, Electric: 200}

// PriceCents is what a rental of so many minutes costs.
func PriceCents(category Category, minutes int) (int, error) {
	cents, known := halfHourCents[category]
	if !known {
		return 0, ErrCategory
	}
	if minutes < 0 {
		return 0, ErrDuration
	}
	if minutes <= freeMinutes {
		return 0, nil
	}
	halves := minutes / day * mostADay
	rest := minutes % day / halfHour
	if rest > mostADay {
		rest = mostADay
	}
	return (halves + rest) * cents, nil
}
