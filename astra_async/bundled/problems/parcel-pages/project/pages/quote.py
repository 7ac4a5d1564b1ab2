"""What a parcel costs: `site/quote.html`."""

from pages.page import Page, PageError


class QuotePage(Page):
    path = "/quote.html"
