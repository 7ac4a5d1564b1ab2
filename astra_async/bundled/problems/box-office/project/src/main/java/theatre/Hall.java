package theatre;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The rows of a hall, and which seats are taken. */
public final class Hall {
    /** A row with as many seats, all of one category. */
    public record Row(Category category, int seats) {}

    private final List<Row> rows;
    private final Set<Seat> taken = new HashSet<>();

    /** Rows from the stage on. */
    public Hall(List<Row> rows) {
        this.rows = List.copyOf(rows);
    }

    public List<Row> rows() {
        return rows;
    }

    public boolean isFree(Seat seat) {
        return !taken.contains(seat);
    }

    public void take(Collection<Seat> seats) {
        taken.addAll(seats);
    }

    public void free(Collection<Seat> seats) {
        taken.removeAll(seats);
    }
}
