"""What a parcel costs: `site/quote.html`."""

import re
from decimal import Decimal

from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from pages.page import Page, PageError

CALCULATE = (By.ID, "calculate")


class QuotePage(Page):
    path = "/quote.html"

    def accept_terms(self):
        if self.driver.find_element(*CALCULATE).is_enabled():
            return
        self.driver.switch_to.frame("terms")
        try:
            self.driver.find_element(By.ID, "read").click()
            self.driver.find_element(By.ID, "accept").click()
        finally:
            self.driver.switch_to.default_content()

    def quote(self, weight, zone, express=False):
        field = self.driver.find_element(By.ID, "weight")
        field.clear()
        field.send_keys(weight)
        Select(self.driver.find_element(By.ID, "zone")).select_by_visible_text(zone)
        box = self.driver.find_element(By.ID, "express")
        if box.is_selected() != express:
            box.click()
        self.driver.find_element(*CALCULATE).click()
        price = self.driver.find_element(By.ID, "price")
        error = self.driver.find_element(By.ID, "error")
        if error.is_displayed():
            raise PageError(error.text)
        return Decimal(re.sub(r"[^0-9.]", "", price.text))
