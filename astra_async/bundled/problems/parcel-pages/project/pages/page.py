"""What all pages have in common."""

from selenium.webdriver.support.wait import WebDriverWait

PATIENCE_S = 5


class PageError(Exception):
    """The page refuses, or does not offer, what was asked for."""


class Page:
    path = "/"

    def __init__(self, driver, base_url):
        self.driver = driver
        self.base_url = base_url
        self.wait = WebDriverWait(driver, PATIENCE_S, poll_frequency=0.03)

    def visit(self):
        """Leads the browser to the page; what scripts add to it may come later."""
        self.driver.get(self.base_url + self.path)
