import pytest

from pages.page import PageError
from pages.shipments import Shipment, ShipmentsPage

RECIPIENTS = [
    ("P-1003", "Ada Reyes", 12000, "Delivered"),
    ("P-1010", "Cem Aydin", 2010, "Ready"),
    ("P-1007", "Ines Prado", 850, "In transit"),
    ("P-101", "Leo Rossi", 2500, "Ready"),
    ("P-1004", "Mia Wolf", 30000, "In transit"),
    ("P-1009", "Eva Novak", 4075, "Ready"),
    ("P-1002", "Jun Sato", 999, "Ready"),
]


def shipments(count=len(RECIPIENTS)):
    return [
        {
            "number": number,
            "recipient": recipient,
            "weight": weight,
            "status": status,
            "address": [f"{position} Harbour Street", "", "20457 Hamburg"] if position == 4 else [f"{position} Mill Lane"],
        }
        for position, (number, recipient, weight, status) in enumerate(RECIPIENTS[:count], start=1)
    ]


@pytest.fixture
def page(driver, serve):
    """The opened list of five shipments, which are two pages."""
    page = ShipmentsPage(driver, serve(shipments(5)))
    page.open()
    return page


def numbers(rows):
    return [row.number for row in rows]


def status_on_page(driver, number):
    return driver.execute_script("return document.querySelector(`tr[data-number='${arguments[0]}']`)?.cells[3].textContent", number)


def position(driver):
    return driver.execute_script("return document.getElementById('position').textContent")


def test_the_list_is_open_when_it_is_loaded(driver, serve):
    page = ShipmentsPage(driver, serve(shipments(), delay_s=1.5))
    assert page.open() is page
    assert page.rows() == [
        Shipment(number="P-1003", recipient="Ada Reyes", weight=12000, status="Delivered"),
        Shipment(number="P-1010", recipient="Cem Aydin", weight=2010, status="Ready"),
        Shipment(number="P-1007", recipient="Ines Prado", weight=850, status="In transit"),
    ]


def test_a_list_that_cannot_be_loaded_is_an_error(driver, serve):
    with pytest.raises(PageError, match="^The shipments cannot be loaded$"):
        ShipmentsPage(driver, serve(None, delay_s=1.5)).open()
    empty = ShipmentsPage(driver, serve([])).open()
    assert (empty.rows(), empty.all_rows()) == ([], [])


def test_all_rows_are_those_of_every_page(driver, serve):
    page = ShipmentsPage(driver, serve(shipments())).open()
    rows = page.all_rows()
    assert [(row.number, row.recipient, row.weight, row.status) for row in rows] == RECIPIENTS
    driver.execute_script("document.getElementById('previous').click()")
    assert numbers(page.all_rows()) == numbers(rows)


def test_the_list_is_filtered_by_status(driver, page):
    page.filter_by("In transit")
    assert numbers(page.rows()) == ["P-1007", "P-1004"]
    page.filter_by("Cancelled")
    assert page.rows() == []
    page.filter_by("Ready")
    assert numbers(page.all_rows()) == ["P-1010", "P-101"]
    page.filter_by("All")
    assert numbers(page.rows()) == ["P-1003", "P-1010", "P-1007"]


def test_a_shipment_is_cancelled_on_whichever_page(driver, page):
    assert page.cancel("P-101") == "P-101 was cancelled"
    assert status_on_page(driver, "P-101") == "Cancelled"
    assert page.cancel("P-1010") == "P-1010 was cancelled"
    cancelled = [row.number for row in page.all_rows() if row.status == "Cancelled"]
    assert cancelled == ["P-1010", "P-101"]


def test_a_shipment_stays_when_nobody_confirms(driver, page):
    assert page.cancel("P-1010", confirm=False) is None
    assert page.cancel("P-101") == "P-101 was cancelled"
    assert page.cancel("P-1010", confirm=False) is None
    assert [row.number for row in page.all_rows() if row.status == "Cancelled"] == ["P-101"]


def test_what_cannot_be_cancelled_is_an_error(driver, page):
    for number in ("P-1003", "P-10", "P-1004"):
        with pytest.raises(PageError):
            page.cancel(number)
    page.filter_by("Delivered")
    with pytest.raises(PageError):
        page.cancel("P-1010")
    page.filter_by("All")
    assert [row.status for row in page.all_rows()] == [status for *_, status in RECIPIENTS[:5]]


def test_a_label_is_read_in_its_own_window(driver, page):
    window = driver.current_window_handle
    assert page.label("P-1010") == ["Cem Aydin", "2 Mill Lane"]
    assert (driver.window_handles, driver.current_window_handle) == ([window], window)
    assert page.label("P-101") == ["Leo Rossi", "4 Harbour Street", "20457 Hamburg"]
    assert position(driver) == "Page 2 of 2"
    assert driver.window_handles == [window]
    with pytest.raises(PageError):
        page.label("P-2000")
