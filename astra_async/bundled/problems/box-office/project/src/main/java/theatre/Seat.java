package theatre;

/** A seat: rows count from the stage, numbers from the left, both from 1. */
public record Seat(int row, int number) {}
