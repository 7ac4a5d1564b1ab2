from decimal import Decimal

import pytest
from selenium.webdriver.common.by import By

from pages.page import PageError
from pages.quote import QuotePage


@pytest.fixture
def page(driver, serve):
    """The quote page, opened."""
    page = QuotePage(driver, serve())
    page.visit()
    return page


def test_terms_are_accepted_within_their_frame(driver, page):
    page.accept_terms()
    assert driver.find_element(By.ID, "calculate").is_enabled()
    page.accept_terms()
    assert driver.find_element(By.ID, "calculate").is_enabled()


def test_quotes_are_those_of_what_was_asked_last(page):
    page.accept_terms()
    quotes = [page.quote("2.5", "Europe", express=True), page.quote("40", "World")]
    assert quotes == [Decimal("30.19"), Decimal("1000.00")]
    assert all(isinstance(quote, Decimal) for quote in quotes)


def test_what_the_page_refuses_is_an_error(page):
    page.accept_terms()
    with pytest.raises(PageError, match="^The weight must be above 0 kg$"):
        page.quote("0", "Domestic")
    assert page.quote("10", "Europe") == Decimal("44.50")
