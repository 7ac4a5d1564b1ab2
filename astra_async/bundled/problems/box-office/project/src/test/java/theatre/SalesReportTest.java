package theatre;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SalesReportTest {
    private static Reservation sold(String customer, Category category, int totalCents) {
        return new Reservation(1, customer, category, List.of(new Seat(1, 1)), totalCents);
    }

    private final SalesReport report = new SalesReport(List.of(
            sold("Grace", Category.GALLERY, 1800),
            sold("Ada", Category.STALLS, 4000),
            sold("Linus", Category.GALLERY, 1800),
            sold("Barbara", Category.STALLS, 2000),
            sold("Grace", Category.STALLS, 2000)));

    @Test
    void everyCategoryHasItsRevenue() {
        assertEquals("{STALLS=8000, CIRCLE=0, GALLERY=3600}", report.revenueByCategory().toString());
        assertEquals("{STALLS=0, CIRCLE=0, GALLERY=0}", new SalesReport(List.of()).revenueByCategory().toString());
    }

    @Test
    void theCustomersWhoPaidMostComeFirst() {
        assertEquals(List.of("Ada", "Grace", "Barbara"), report.topCustomers(3));
        assertEquals(List.of("Ada", "Grace", "Barbara", "Linus"), new ArrayList<>(report.topCustomers(9)));
        SalesReport equal = new SalesReport(List.of(sold("Zoe", Category.CIRCLE, 5), sold("Amy", Category.CIRCLE, 5)));
        assertEquals(List.of("Amy", "Zoe"), equal.topCustomers(2));
    }
}
