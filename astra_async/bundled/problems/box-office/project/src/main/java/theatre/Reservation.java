package theatre;

import java.util.List;

/** A customer's seats of one category, and what they cost together. */
public record Reservation(int number, String customer, Category category, List<Seat> seats, int totalCents) {
    public Reservation {
        seats = List.copyOf(seats);
    }
}
