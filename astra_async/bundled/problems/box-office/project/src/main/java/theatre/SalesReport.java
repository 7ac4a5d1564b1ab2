package theatre;

import java.util.List;
import java.util.Map;

/** What was sold. */
public final class SalesReport {
    private final List<Reservation> reservations;

    public SalesReport(List<Reservation> reservations) {
        this.reservations = List.copyOf(reservations);
    }

    /** The revenue in cents of every category, in the order of the categories. */
    public Map<Category, Integer> revenueByCategory() {
        throw new UnsupportedOperationException();
    }

    /** The customers who paid most. */
    public List<String> topCustomers(int count) {
        throw new UnsupportedOperationException();
    }
}
