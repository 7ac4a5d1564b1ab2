package theatre;

import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What was sold. */
public final class SalesReport {
    private final List<Reservation> reservations;

    public SalesReport(List<Reservation> reservations) {
        this.reservations = List.copyOf(reservations);
    }

    /** The revenue in cents of every category, in the order of the categories. */
    public Map<Category, Integer> revenueByCategory() {
        Map<Category, Integer> revenue = new EnumMap<>(Category.class);
        for (Category category : Category.values()) {
            revenue.put(category, 0);
        }
        for (Reservation reservation : reservations) {
            revenue.merge(reservation.category(), reservation.totalCents(), Integer::sum);
        }
        return revenue;
    }

    /** The customers who paid most. */
    public List<String> topCustomers(int count) {
        Map<String, Integer> totals = reservations.stream()
                .collect(Collectors.groupingBy(
                        Reservation::customer, Collectors.summingInt(Reservation::totalCents)));
        Comparator<Map.Entry<String, Integer>> order = Map.Entry.<String, Integer>comparingByValue().reversed();
        return totals.entrySet().stream()
                .sorted(order.thenComparing(Map.Entry.comparingByKey()))
                .limit(count)
                .map(Map.Entry::getKey)
                .collect(Collectors.toList());
    }
}
