package theatre;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class PriceListTest {
    private final PriceList prices = new PriceList();

    @Test
    void childrenAndSeniorsPayLess() {
        assertEquals(4000, prices.priceCents(Category.STALLS, 14));
        assertEquals(4000, prices.priceCents(Category.STALLS, 64));
        assertEquals(2000, prices.priceCents(Category.STALLS, 13));
        assertEquals(2000, prices.priceCents(Category.STALLS, 0));
        assertEquals(3200, prices.priceCents(Category.STALLS, 65));
        assertEquals(2400, prices.priceCents(Category.CIRCLE, 90));
    }

    @Test
    void reducedPricesAreRoundedUpToFiftyCents() {
        assertEquals(1450, prices.priceCents(Category.GALLERY, 70));
        assertEquals(900, prices.priceCents(Category.GALLERY, 7));
        assertEquals(1800, prices.priceCents(Category.GALLERY, 30));
        assertThrows(IllegalArgumentException.class, () -> prices.priceCents(Category.CIRCLE, -1));
    }
}
