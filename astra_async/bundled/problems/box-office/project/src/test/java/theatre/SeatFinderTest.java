package theatre;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SeatFinderTest {
    private final Hall hall = new Hall(List.of(
            new Hall.Row(Category.STALLS, 6),
            new Hall.Row(Category.STALLS, 9),
            new Hall.Row(Category.CIRCLE, 7)));
    private final SeatFinder finder = new SeatFinder();

    private static List<Seat> seats(int row, int first, int last) {
        return IntStream.rangeClosed(first, last).mapToObj(number -> new Seat(row, number)).collect(Collectors.toList());
    }

    @Test
    void theMiddleOfTheRowNearestToTheStageIsBest() {
        assertEquals(seats(1, 3, 4), finder.best(hall, Category.STALLS, 2));
        assertEquals(seats(2, 2, 8), finder.best(hall, Category.STALLS, 7));
        assertEquals(seats(3, 4, 4), finder.best(hall, Category.CIRCLE, 1));
    }

    @Test
    void takenSeatsAreLeftOutAndTheLeftOfTwoEqualBlocksIsBest() {
        assertEquals(seats(1, 3, 3), finder.best(hall, Category.STALLS, 1));
        hall.take(seats(1, 2, 5));
        assertEquals(seats(2, 4, 6), finder.best(hall, Category.STALLS, 3));
        hall.take(seats(2, 4, 6));
        assertEquals(seats(2, 1, 3), finder.best(hall, Category.STALLS, 3));
        assertEquals(List.of(), finder.best(hall, Category.STALLS, 4));
        assertEquals(List.of(), finder.best(hall, Category.GALLERY, 1));
    }
}
