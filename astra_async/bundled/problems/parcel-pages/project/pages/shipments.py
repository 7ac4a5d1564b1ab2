"""The list of shipments: `site/index.html`."""

from dataclasses import dataclass

from pages.page import Page, PageError


@dataclass(frozen=True)
class Shipment:
    """One row of the list; the weight is in grams."""

    number: str
    recipient: str
    weight: int
    status: str


class ShipmentsPage(Page):
    path = "/index.html"
