package theatre;

/** What a ticket costs. */
public final class PriceList {
    /** The price in cents for a visitor of this age in years. */
    public int priceCents(Category category, int age) {
        throw new UnsupportedOperationException();
    }
}
