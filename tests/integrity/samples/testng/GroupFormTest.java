package forms;

import static org.testng.Assert.assertEquals;

import org.testng.Assert;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

public class GroupFormTest {
    @BeforeMethod
    public void before() { }

    @Test
    public void plain() { assertEquals(1 + 2, 3); Assert.assertEquals("a", "a"); Assert.assertTrue(true); }

    @Test(groups = "slow", dependsOnMethods = "plain")
    public void dependent() { Assert.assertNotNull("x"); }

    @Test(expectedExceptions = IllegalArgumentException.class, expectedExceptionsMessageRegExp = "x.*")
    public void expected() { throw new IllegalArgumentException("xy"); }

    @Test(expectedExceptions = {AssertionError.class})
    public void expectedError() { Assert.fail("x"); }

    @Test(expectedExceptions = Throwable.class)
    public void expectedThrowable() { throw new IllegalStateException("x"); }

    @Test(enabled = false)
    public void off() { Assert.fail(); }

    @DataProvider
    public Object[][] numbers() { return new Object[][] {{1}, {2}}; }

    @Test(dataProvider = "numbers")
    public void table(int number) { Assert.assertTrue(number > 0); }

    @Test
    public static class WholeTest {
        public void one() { Assert.assertEquals(true, true); }

        public void two() throws Exception { Assert.assertNull(null); }

        void notPublic() { Assert.fail(); }

        public int notVoid() { return 1; }
    }
}
