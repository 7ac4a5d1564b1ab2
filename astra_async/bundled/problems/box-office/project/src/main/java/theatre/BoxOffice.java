package theatre;

import java.util.List;

/** Reserves and cancels seats of one hall. */
public final class BoxOffice {
    private final Hall hall;
    private final PriceList prices = new PriceList();
    private final SeatFinder finder = new SeatFinder();

    public BoxOffice(Hall hall) {
        this.hall = hall;
    }

    /** Reserves one seat for each visitor, next to each other. */
    public Reservation reserve(String customer, Category category, List<Integer> ages) {
        throw new UnsupportedOperationException();
    }

    /** Cancels a reservation. */
    public void cancel(int number) {
        throw new UnsupportedOperationException();
    }

    /** The reservations that were not cancelled, in the order of their numbers. */
    public List<Reservation> reservations() {
        throw new UnsupportedOperationException();
    }
}
