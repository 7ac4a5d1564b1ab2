package theatre;

/** A price category, with the price of a full ticket in cents. */
public enum Category {
    STALLS(4000),
    CIRCLE(3000),
    GALLERY(1800);

    private final int fullPriceCents;

    Category(int fullPriceCents) {
        this.fullPriceCents = fullPriceCents;
    }

    public int fullPriceCents() {
        return fullPriceCents;
    }
}
