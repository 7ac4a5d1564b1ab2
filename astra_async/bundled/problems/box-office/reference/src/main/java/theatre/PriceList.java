package theatre;

/** What a ticket costs. */
public final class PriceList {
    private static final int CHILD_UNDER = 14;
    private static final int SENIOR_FROM = 65;
    private static final int STEP_CENTS = 50;

    /** The price in cents for a visitor of this age in years. */
    public int priceCents(Category category, int age) {
        if (age < 0) {
            throw new IllegalArgumentException("An age is not negative: " + age);
        }
        int full = category.fullPriceCents();
        if (age < CHILD_UNDER) {
            return reduced(full, 50);
        }
        if (age >= SENIOR_FROM) {
            return reduced(full, 80);
        }
        return full;
    }

    private static int reduced(int fullCents, int percent) {
        int hundredths = fullCents * percent;
        int step = STEP_CENTS * 100;
        return (hundredths + step - 1) / step * STEP_CENTS;
    }
}
