import os
import shutil
import signal

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from server import Site

DEADLINE_S = 30
OPTIONS = (
    "--headless=new",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-features=BackForwardCache,MediaRouter,OptimizationHints,PaintHolding,Translate",
    "--in-process-gpu",
    "--window-size=800,600",
)


class Driver(webdriver.Chrome):
    """A driver that counts what it was asked to do."""

    commands = 0

    def execute(self, *arguments, **options):
        try:
            return super().execute(*arguments, **options)
        finally:
            self.commands += 1


class Browser:
    """A Chromium that every test finds with one empty window; a new one after a test that left it otherwise."""

    def __init__(self):
        self._driver = None

    def empty(self):
        if self._driver is None or not self._is_usable():
            self.close()
            self._driver = self._started()
        return self._driver

    def close(self):
        if self._driver is not None:
            self._driver.quit()
            self._driver = None

    def _started(self):
        options = webdriver.ChromeOptions()
        options.binary_location = os.environ.get("CHROME_BIN", "/usr/bin/chromium")
        for option in OPTIONS:
            options.add_argument(option)
        driver = Driver(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        driver.set_page_load_timeout(30)
        return driver

    def _is_usable(self):
        try:
            if len(self._driver.window_handles) != 1:
                return False
            self._driver.get("about:blank")
        except WebDriverException:
            return False
        return True


@pytest.fixture(autouse=True)
def deadline():
    """Ends a test that would never end, so that the others are run."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"The test took more than {DEADLINE_S} s"))
    signal.alarm(DEADLINE_S)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def driver(browser):
    return browser.empty()


@pytest.fixture
def serve(driver):
    """A function that serves the site with the given shipments and returns its address."""
    sites = []

    def serve(shipments=()):
        sites.append(Site(shipments, looks=lambda: driver.commands))
        return sites[-1].url

    yield serve
    for site in sites:
        site.close()
