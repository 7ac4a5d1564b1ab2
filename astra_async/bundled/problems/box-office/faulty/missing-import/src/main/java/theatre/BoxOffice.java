package theatre;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Reserves and cancels seats of one hall. */
public final class BoxOffice {
    private static final int GROUP = 10;

    private final Hall hall;
    private final PriceList prices = new PriceList();
    private final SeatFinder finder = new SeatFinder();
    private final Map<Integer, Reservation> reservations = new TreeMap<>();
    private int lastNumber = 0;

    public BoxOffice(Hall hall) {
        this.hall = hall;
    }

    /** Reserves one seat for each visitor, next to each other. */
    public Reservation reserve(String customer, Category category, List<Integer> ages) {
        if (customer.isBlank() || ages.isEmpty() || ages.stream().anyMatch(age -> age < 0)) {
            throw new BookingException(BookingException.Reason.INVALID);
        }
        List<Seat> seats = finder.best(hall, category, ages.size());
        if (seats.isEmpty()) {
            throw new BookingException(BookingException.Reason.SOLD_OUT);
        }
        lastNumber++;
        Reservation reservation = new Reservation(lastNumber, customer, category, seats, total(category, ages));
        hall.take(seats);
        reservations.put(lastNumber, reservation);
        return reservation;
    }

    /** Cancels a reservation. */
    public void cancel(int number) {
        Reservation cancelled = reservations.remove(number);
        if (cancelled == null) {
            throw new BookingException(BookingException.Reason.UNKNOWN_RESERVATION);
        }
        hall.free(cancelled.seats());
    }

    /** The reservations that were not cancelled, in the order of their numbers. */
    public List<Reservation> reservations() {
        return new ArrayList<>(reservations.values());
    }

    private int total(Category category, List<Integer> ages) {
        return ages.stream()
                .map(age -> prices.priceCents(category, age))
                .sorted()
                .skip(ages.size() / GROUP)
                .mapToInt(Integer::intValue)
                .sum();
    }
}
