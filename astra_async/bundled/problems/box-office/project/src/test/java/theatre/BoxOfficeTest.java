package theatre;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class BoxOfficeTest {
    private final Hall hall = new Hall(List.of(
            new Hall.Row(Category.STALLS, 4),
            new Hall.Row(Category.GALLERY, 40)));
    private final BoxOffice office = new BoxOffice(hall);

    private BookingException.Reason refusal(Runnable booking) {
        return assertThrows(BookingException.class, booking::run).reason();
    }

    @Test
    void aReservationTakesTheBestSeatsAndAddsUpThePrices() {
        Reservation first = office.reserve("Ada", Category.STALLS, List.of(36, 8));
        assertEquals(new Reservation(1, "Ada", Category.STALLS, List.of(new Seat(1, 2), new Seat(1, 3)), 6000), first);
        Reservation second = office.reserve("Grace", Category.STALLS, List.of(70));
        assertEquals(new Reservation(2, "Grace", Category.STALLS, List.of(new Seat(1, 1)), 3200), second);
        assertEquals(List.of(first, second), office.reservations());
    }

    @Test
    void ofEveryTenTicketsTheCheapestIsFree() {
        assertEquals(9 * 1800, office.reserve("Nine", Category.GALLERY, Collections.nCopies(9, 30)).totalCents());
        List<Integer> ages = List.of(30, 30, 30, 30, 30, 30, 30, 30, 8, 70);
        assertEquals(8 * 1800 + 1450, office.reserve("Ten", Category.GALLERY, ages).totalCents());
        Hall big = new Hall(List.of(new Hall.Row(Category.CIRCLE, 25)));
        List<Integer> twenty = new java.util.ArrayList<>(Collections.nCopies(19, 30));
        twenty.add(70);
        assertEquals(18 * 3000, new BoxOffice(big).reserve("Twenty", Category.CIRCLE, twenty).totalCents());
    }

    @Test
    void aBookingThatIsNotPossibleChangesNothing() {
        assertEquals(BookingException.Reason.SOLD_OUT, refusal(() -> office.reserve("Ada", Category.STALLS, List.of(9, 9, 9, 9, 9))));
        assertEquals(BookingException.Reason.SOLD_OUT, refusal(() -> office.reserve("Ada", Category.CIRCLE, List.of(30))));
        assertEquals(BookingException.Reason.INVALID, refusal(() -> office.reserve("  ", Category.STALLS, List.of(30))));
        assertEquals(BookingException.Reason.INVALID, refusal(() -> office.reserve("Ada", Category.STALLS, List.of())));
        assertEquals(BookingException.Reason.INVALID, refusal(() -> office.reserve("Ada", Category.STALLS, List.of(30, -1))));
        assertEquals(List.of(), office.reservations());
        assertEquals(1, office.reserve("Ada", Category.STALLS, List.of(30, 30, 30, 30)).number());
    }

    @Test
    void aCancelledReservationFreesItsSeatsButNotItsNumber() {
        office.reserve("Ada", Category.STALLS, List.of(30, 30, 30, 30));
        office.cancel(1);
        assertEquals(List.of(), office.reservations());
        assertEquals(2, office.reserve("Grace", Category.STALLS, List.of(30, 30, 30)).number());
        assertEquals(BookingException.Reason.UNKNOWN_RESERVATION, refusal(() -> office.cancel(1)));
        assertEquals(BookingException.Reason.UNKNOWN_RESERVATION, refusal(() -> office.cancel(3)));
    }
}
