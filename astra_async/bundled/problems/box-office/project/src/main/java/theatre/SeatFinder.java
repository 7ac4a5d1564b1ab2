package theatre;

import java.util.List;

/** The choice of the best seats. */
public final class SeatFinder {
    /** The best adjacent free seats, from left to right; empty where there are none. */
    public List<Seat> best(Hall hall, Category category, int count) {
        throw new UnsupportedOperationException();
    }
}
