import pytest

from pages.page import PageError
from pages.shipments import Shipment, ShipmentsPage

RECIPIENTS = [
    ("P-1003", "Ada Reyes", 12000, "Delivered"),
    ("P-1010", "Cem Aydin", 2010, "Ready"),
    ("P-1007", "Ines Prado", 850, "In transit"),
    ("P-101", "Leo Rossi", 2500, "Ready"),
    ("P-1004", "Mia Wolf", 30000, "In transit"),
]
SHIPMENTS = [
    dict(zip(("number", "recipient", "weight", "status"), recipient, strict=True)) for recipient in RECIPIENTS
]


@pytest.fixture
def page(driver, serve):
    """The opened list of five shipments, which are two pages."""
    page = ShipmentsPage(driver, serve(SHIPMENTS))
    page.open()
    return page


def numbers(rows):
    return [row.number for row in rows]


def test_the_list_is_open_when_it_is_loaded_or_the_page_says_why_not(driver, serve):
    page = ShipmentsPage(driver, serve(SHIPMENTS[:2]))
    assert page.open() is page
    assert page.rows() == [
        Shipment(number="P-1003", recipient="Ada Reyes", weight=12000, status="Delivered"),
        Shipment(number="P-1010", recipient="Cem Aydin", weight=2010, status="Ready"),
    ]
    with pytest.raises(PageError, match="^The shipments cannot be loaded$"):
        ShipmentsPage(driver, serve(None)).open()


def test_all_rows_are_those_of_every_page(page):
    rows = page.all_rows()
    assert [(row.number, row.recipient, row.weight, row.status) for row in rows] == RECIPIENTS
    assert numbers(page.all_rows()) == numbers(rows)


def test_the_list_is_filtered_by_status(page):
    page.filter_by("In transit")
    assert numbers(page.rows()) == ["P-1007", "P-1004"]
    page.filter_by("Cancelled")
    assert page.rows() == []
    page.filter_by("Ready")
    assert numbers(page.rows()) == ["P-1010", "P-101"]


def test_a_shipment_is_cancelled_on_whichever_page(page):
    assert page.cancel("P-101") == "P-101 was cancelled"
    assert page.cancel("P-1010") == "P-1010 was cancelled"
    for number in ("P-1003", "P-10"):
        with pytest.raises(PageError):
            page.cancel(number)
    assert [row.status for row in page.all_rows()] == [
        "Delivered",
        "Cancelled",
        "In transit",
        "Cancelled",
        "In transit",
    ]
