package forms;

import static org.junit.jupiter.api.Assertions.*;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EveryFormTest {
    private final int[] numbers = {1, 2};

    private void assertSame(int one, int other) {
        assertEquals(one, other);
    }

    @BeforeEach
    void prepare() { numbers[0] = 1; }

    @Test
    void equal() {
        assertEquals(4000, 4 * 1000);
        assertEquals("text", "te" + "xt", "a message");
        assertEquals(1.5, 3 / 2.0);
        assertEquals('a', "abc".charAt(0));
        assertEquals(5L, 2L + 3);
    }

    @Test public void hidesAnImportedName() { assertSame(1, numbers[0]); }

    @Test
    void throwing() throws Exception {
        assertThrows(IOException.class, () -> { throw new IOException("x"); });
        assertDoesNotThrow(() -> { Integer.parseInt("1"); });
        Assertions.assertTrue(numbers.length == 2);
        org.junit.jupiter.api.Assertions.assertFalse(numbers.length == 3);
    }

    @Test
    void returnsEarly() {
        if (numbers[0] == 1) {
            return;
        }
        fail("not here");
    }

    @Test
    void collections() {
        assertArrayEquals(new int[] {1, 2}, numbers);
        assertIterableEquals(List.of(1), List.of(1));
        assertAll(() -> assertTrue(true), () -> assertNotEquals(1, 2));
        assertNull(null);
        assertInstanceOf(String.class, "x");
        assertNotNull("x");
    }

    @Test void empty() { }

    @Test
    @DisplayName("A name that is shown")
    void shown() { var found = new int[] {3}; Runnable run = () -> found[0]++; run.run(); assertEquals(4, found[0]); }

    @Test
    @Timeout(5)
    void assumes() { Assumptions.assumeTrue(numbers.length == 2); assertTrue(true); }

    @Test
    @Disabled("for now")
    void disabled() { fail(); }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void table(int number) { assertTrue(number > 0); }

    @RepeatedTest(2)
    void repeated() { assertTrue(true); }

    @TestFactory
    Stream<DynamicTest> made() {
        return Stream.of(1, 2).map(number -> dynamicTest("made " + number, () -> assertTrue(number > 0)));
    }

    @TestFactory
    List<DynamicTest> madeOtherwise() {
        Runnable code = () -> assertTrue(true);
        return List.of(dynamicTest("one", code::run), dynamicTest("block", () -> {
            assertEquals(1, 1);
        }));
    }

    @Nested
    class Inner extends Shared {
        @Test
        void inner() { assertEquals(true, numbers.length == 2); }
    }

    abstract static class Shared {
        @Test
        void inherited() { Assertions.assertEquals("x{}", "x{}"); }
    }

    interface Contract {
        @Test
        default void contracted() { assertTrue(true); }
    }

    static class ByContract implements Contract { }

    @Nested
    @Disabled
    class Off {
        @Test
        void off() { fail(); }
    }
}
