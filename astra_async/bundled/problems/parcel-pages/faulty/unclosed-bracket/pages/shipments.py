"""The list of shipments: `site/index.html`."""

from dataclasses import dataclass
from decimal import Decimal

from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions as shown
from selenium.webdriver.support.select import Select

from pages.page import Page, PageError

LIST = (By.ID, "list")
FAILURE = (By.ID, "failure")
TABLE = (By.CSS_SELECTOR, "#shipments[aria-busy='false']")


@dataclass(frozen=True)
class Shipment:
    """One row of the list; the weight is in grams."""

    number: str
    recipient: str
    weight: int
    status: str


def grams(text):
    """A weight as the list writes it (850 g, 2.5 kg) in grams."""
    amount, unit = text.split()
    return int(Decimal(amount) * (1000 if unit == "kg" else 1))


class ShipmentsPage(Page):
    path = "/index.html"

    def open(self):
        self.visit()
        self.wait.until(shown.any_of(*map(shown.visibility_of_element_located, (LIST, FAILURE))))
        failure = self.driver.find_element(*FAILURE)
        if failure.is_displayed():
            raise PageError(failure.text)
        return self

    def rows(self):
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#shipments tbody tr[data-number]")
        return [self._shipment(row) for row in rows

    def all_rows(self):
        return [shipment for _ in self._pages() for shipment in self.rows()]

    def filter_by(self, status):
        Select(self.driver.find_element(By.ID, "status")).select_by_visible_text(status)
        self._await_list()

    def cancel(self, number):
        buttons = self._find(number).find_elements(By.CSS_SELECTOR, "button.cancel")
        if not buttons:
            raise PageError(f"{number} cannot be cancelled")
        buttons[0].click()
        self.wait.until(shown.alert_is_present()).accept()
        self._await_list()
        return self.driver.find_element(By.ID, "notice").text

    def _find(self, number):
        """The row of a shipment, on the page of the list that has it, which is shown then."""
        for _ in self._pages():
            rows = self.driver.find_elements(By.CSS_SELECTOR, f"tr[data-number='{number}']")
            if rows:
                return rows[0]
        raise PageError(f"There is no shipment {number} on the list")

    def _pages(self):
        """Shows one page of the list after the other, from the first."""
        while self._turn("previous"):
            pass
        yield
        while self._turn("next"):
            yield

    def _turn(self, name):
        button = self.driver.find_element(By.ID, name)
        if button.is_enabled():
            button.click()
            return True
        return False

    def _await_list(self):
        # The old rows stay until the new ones are there.
        self.wait.until(shown.presence_of_element_located(TABLE))

    def _shipment(self, row):
        number, recipient, weight, status = (cell.text for cell in row.find_elements(By.TAG_NAME, "td")[:4])
        return Shipment(number=number, recipient=recipient, weight=grams(weight), status=status)
