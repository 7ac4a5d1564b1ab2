package rental

import "fmt"

// Format writes cents as people read them: 1250 is "12.50".
func Format(cents int) string {
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}
