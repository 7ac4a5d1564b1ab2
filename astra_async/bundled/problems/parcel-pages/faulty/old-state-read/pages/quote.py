"""What a parcel costs: `site/quote.html`."""

import re
from decimal import Decimal

from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions as shown
from selenium.webdriver.support.select import Select

from pages.page import Page, PageError

CALCULATE = (By.ID, "calculate")
PRICE = (By.ID, "price")


class QuotePage(Page):
    path = "/quote.html"

    def accept_terms(self):
        if self.driver.find_element(*CALCULATE).is_enabled():
            return
        self.wait.until(shown.frame_to_be_available_and_switch_to_it((By.ID, "terms")))
        try:
            self.wait.until(shown.element_to_be_clickable((By.ID, "read"))).click()
            self.driver.find_element(By.ID, "accept").click()
        finally:
            self.driver.switch_to.default_content()
        self.wait.until(shown.element_to_be_clickable(CALCULATE))

    def quote(self, weight, zone, express=False):
        field = self.driver.find_element(By.ID, "weight")
        field.clear()
        field.send_keys(weight)
        Select(self.driver.find_element(By.ID, "zone")).select_by_visible_text(zone)
        box = self.driver.find_element(By.ID, "express")
        if box.is_selected() != express:
            box.click()
        self.driver.find_element(*CALCULATE).click()
        price = self.wait.until(shown.visibility_of_element_located(PRICE))
        error = self.driver.find_element(By.ID, "error")
        if error.is_displayed():
            raise PageError(error.text)
        return Decimal(re.sub(r"[^0-9.]", "", price.text))
