// Price prints what a rental costs: price city 90
package main

import (
	"fmt"
	"os"
	"strconv"

	"rental"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: price CATEGORY MINUTES")
		os.Exit(2)
	}
	minutes, err := strconv.Atoi(os.Args[2])
	if err == nil {
		var cents int
		if cents, err = rental.PriceCents(rental.Category(os.Args[1]), minutes); err == nil {
			fmt.Println(rental.Format(cents))
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
