"""Settings of the test run: those of the service, and a JUnit report."""

from expenses.settings import *  # noqa: F403

TEST_RUNNER = "xmlrunner.extra.djangotestrunner.XMLTestRunner"
TEST_OUTPUT_FILE_NAME = "unit.xml"
