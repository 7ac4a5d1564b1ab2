package forms;

import static org.hamcrest.CoreMatchers.is;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThat;
import static org.junit.Assert.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.After;
import org.junit.Assert;
import org.junit.Before;
import org.junit.Ignore;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.ExpectedException;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

public class OldFormTest extends OldFormBase {
    @SuppressWarnings("deprecation")
    @Rule
    public ExpectedException thrown = ExpectedException.none();

    @Before
    public void before() { }

    @After
    public void after() { }

    @Test
    public void plain() { assertEquals(3, 1 + 2); Assert.assertEquals("a", "a"); }

    @SuppressWarnings("deprecation")
    @Test
    public void matched() { assertThat("x", is("x")); }

    @Test(expected = IllegalArgumentException.class)
    public void expected() { throw new IllegalArgumentException("x"); }

    @Test(expected = AssertionError.class)
    public void expectedError() { assertTrue(false); }

    @Test(expected = Exception.class, timeout = 1000)
    public void expectedAny() throws Exception { throw new Exception("x"); }

    @Test(expected = Throwable.class)
    public void expectedThrowable() { throw new IllegalStateException("x"); }

    @Test
    public void byRule() {
        thrown.expect(IllegalStateException.class);
        throw new IllegalStateException("x");
    }

    @Ignore
    @Test
    public void ignored() { Assert.fail(); }

    @RunWith(Parameterized.class)
    public static class TableTest {
        private final int number;

        public TableTest(int number) { this.number = number; }

        @Parameterized.Parameters
        public static List<Object[]> numbers() { return Arrays.asList(new Object[][] {{1}, {2}}); }

        @Test
        public void positive() { Assert.assertTrue(number > 0); }
    }

    public static class ThirdTest extends junit.framework.TestCase {
        public void testNothing() { assertEquals(1, 1); }
    }
}

class OldFormBase {
    @org.junit.Test
    public void fromTheBase() { org.junit.Assert.assertNotNull("x"); }
}
