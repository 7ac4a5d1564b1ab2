package theatre;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The choice of the best seats. */
public final class SeatFinder {
    /** The best adjacent free seats, from left to right; empty where there are none. */
    public List<Seat> best(Hall hall, Category category, int count) {
        for (int row = 1; row <= hall.rows().size(); row++) {
            if (hall.rows().get(row - 1).category() == category) {
                List<Seat> block = bestInRow(hall, row, count);
                if (!block.isEmpty()) {
                    return block;
                }
            }
        }
        return List.of();
    }

    private static List<Seat> bestInRow(Hall hall, int row, int count) {
        int seats = hall.rows().get(row - 1).seats();
        List<Seat> best = List.of();
        int nearest = Integer.MAX_VALUE;
        for (int first = 1; first + count - 1 <= seats; first++) {
            List<Seat> block = block(row, first, count);
            // Twice the distance between the middle of the block and that of the row.
            int distance = Math.abs(2 * first + count - 1 - (seats + 1));
            if (distance < nearest && block.stream().allMatch(hall::isFree)) {
                best = block;
                nearest = distance;
            }
        }
        return best;
    }

    private static List<Seat> block(int row, int first, int count) {
        return IntStream.range(first - 1, first + count - 1)
                .mapToObj(number -> new Seat(row, number))
                .collect(Collectors.toList());
    }
}
