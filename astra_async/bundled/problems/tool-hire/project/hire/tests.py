from datetime import date

from django.test import TestCase

from hire.errors import InvalidPeriod, ToolTaken
from hire.models import Booking, Customer, Payment, Tool

TOOLS = [
    ("Mower", "Garden", 2000),
    ("Drill", "Workshop", 900),
    ("Chipper", "Garden", 5000),
    ("Saw", "Workshop", 1500),
    ("Hedge trimmer", "Garden", 1200),
    ("Ladder", "Access", 700),
]


def may(day):
    return date(2024, 5, day)


class HireTestCase(TestCase):
    def setUp(self):
        for name, category, daily_rate in TOOLS:
            Tool(name=name, category=category, daily_rate=daily_rate).save()
        self.tools = {tool.name: tool for tool in Tool.objects.all()}
        for name in ("Dora", "Ada", "Cem", "Bob"):
            Customer(name=name).save()
        self.customers = {customer.name: customer for customer in Customer.objects.all()}

    def hired(self, tool, customer, first_day, last_day, price=1000, cancelled=False):
        booking = Booking(
            tool=self.tools[tool],
            customer=self.customers[customer],
            first_day=first_day,
            last_day=last_day,
            price=price,
            cancelled=cancelled,
        )
        booking.save()
        return booking

    def pays(self, customer, amount):
        Payment(customer=self.customers[customer], amount=amount, paid_on=may(31)).save()


class BookingTests(HireTestCase):
    def test_overlapping_bookings_share_a_day_and_queries_chain(self):
        self.hired("Drill", "Ada", may(1), may(3))
        inside = self.hired("Drill", "Bob", may(5), may(6))
        first = self.hired("Saw", "Ada", may(2), may(4))
        last = self.hired("Saw", "Bob", may(8), may(9), cancelled=True)
        around = self.hired("Mower", "Cem", may(1), may(31))
        self.hired("Saw", "Cem", may(9), may(10))
        shared = Booking.objects.overlapping(may(4), may(8))
        self.assertCountEqual(shared, [inside, first, last, around])
        self.assertCountEqual(shared.active(), [inside, first, around])
        self.assertCountEqual(Booking.objects.active().overlapping(may(9), may(9)).exclude(tool__name="Saw"), [around])
        self.assertCountEqual(self.tools["Saw"].bookings.active().overlapping(may(4), may(8)), [first])

    def test_the_price_of_a_booking_is_fixed_and_every_seventh_day_is_free(self):
        drill, ada = self.tools["Drill"], self.customers["Ada"]
        booking = Booking.objects.book(drill, ada, may(1), may(1))
        self.assertEqual(
            (booking.tool, booking.customer, booking.first_day, booking.last_day, booking.cancelled),
            (drill, ada, may(1), may(1), False),
        )
        self.assertEqual(Booking.objects.get().price, 900)
        for first_day, last_day, paid_days in (
            (may(2), may(7), 6),
            (may(8), may(14), 6),
            (may(15), may(22), 7),
            (date(2024, 2, 20), date(2024, 3, 4), 12),
        ):
            booking = Booking.objects.book(drill, ada, first_day, last_day)
            self.assertEqual(booking.price, 900 * paid_days, (first_day, last_day))
        Tool.objects.update(daily_rate=1000)
        booking.refresh_from_db()
        self.assertEqual(booking.price, 10800)

    def test_a_booking_that_is_not_possible_stores_nothing(self):
        saw, bob = self.tools["Saw"], self.customers["Bob"]
        taken = self.hired("Saw", "Ada", may(6), may(10))
        self.hired("Saw", "Cem", may(1), may(5), cancelled=True)
        with self.assertRaises(InvalidPeriod):
            Booking.objects.book(saw, bob, may(4), may(3))
        for first_day, last_day in ((may(10), may(12)), (may(2), may(6)), (may(7), may(8)), (may(1), may(20))):
            with self.assertRaises(ToolTaken):
                Booking.objects.book(saw, bob, first_day, last_day)
        self.assertEqual(Booking.objects.count(), 2)
        Booking.objects.book(saw, bob, may(11), may(12))
        Booking.objects.book(saw, bob, may(1), may(5))
        Booking.objects.book(self.tools["Drill"], bob, may(6), may(10))
        Booking.objects.filter(pk=taken.pk).update(cancelled=True)
        Booking.objects.book(saw, bob, may(6), may(10))
        self.assertEqual(Booking.objects.count(), 6)


class ToolTests(HireTestCase):
    def test_tools_are_free_when_nobody_has_them_on_any_of_the_days(self):
        self.hired("Drill", "Ada", may(1), may(3))
        self.hired("Drill", "Bob", may(6), may(7))
        self.hired("Saw", "Ada", may(3), may(4))
        self.hired("Saw", "Ada", may(20), may(21))
        self.hired("Mower", "Cem", may(5), may(8))
        self.hired("Ladder", "Cem", may(4), may(5), cancelled=True)
        free = Tool.objects.free(may(4), may(5))
        self.assertEqual([tool.name for tool in free], ["Chipper", "Drill", "Hedge trimmer", "Ladder"])
        workshop = Tool.objects.filter(category="Workshop").free(may(5), may(5))
        self.assertEqual([tool.name for tool in workshop], ["Drill", "Saw"])

    def test_usage_counts_the_bookings_that_begin_within_the_period(self):
        self.hired("Drill", "Ada", may(1), may(3), price=2700)
        self.hired("Drill", "Bob", may(9), may(12), price=3600)
        self.hired("Drill", "Bob", may(5), may(5), price=900, cancelled=True)
        self.hired("Saw", "Ada", date(2024, 4, 30), may(4), price=7500)
        self.hired("Mower", "Cem", may(10), may(11), price=4000)
        with self.assertNumQueries(1):
            tools = list(Tool.objects.with_usage(may(1), may(9)))
        usage = {tool.name: (tool.times_booked, tool.revenue) for tool in tools}
        self.assertEqual(len(tools), 6)
        self.assertEqual(usage.pop("Drill"), (2, 6300))
        self.assertEqual(set(usage.values()), {(0, 0)})


class CustomerTests(HireTestCase):
    def test_a_balance_is_what_was_paid_less_what_was_booked(self):
        self.hired("Drill", "Ada", may(1), may(2), price=1800)
        self.hired("Saw", "Ada", may(1), may(2), price=3000)
        self.hired("Mower", "Ada", may(1), may(2), price=4000, cancelled=True)
        self.hired("Chipper", "Bob", may(1), may(1), price=5000)
        for customer, amount in (("Ada", 1800), ("Ada", 1000), ("Ada", 500), ("Cem", 700)):
            self.pays(customer, amount)
        with self.assertNumQueries(1):
            customers = list(Customer.objects.with_balance())
        self.assertEqual(
            {customer.name: (customer.booked, customer.paid, customer.balance) for customer in customers},
            {"Ada": (4800, 3300, -1500), "Bob": (5000, 0, -5000), "Cem": (0, 700, 700), "Dora": (0, 0, 0)},
        )
        self.assertEqual(len(customers), 4)

    def test_debtors_are_those_who_owe_most_first(self):
        self.hired("Drill", "Dora", may(1), may(1), price=900)
        self.hired("Ladder", "Ada", may(1), may(1), price=700)
        self.hired("Ladder", "Ada", may(3), may(3), price=700)
        self.hired("Saw", "Bob", may(1), may(2), price=3000)
        self.hired("Mower", "Cem", may(1), may(1), price=2000)
        for customer, amount in (("Bob", 1000), ("Bob", 1100), ("Ada", 500), ("Cem", 2000)):
            self.pays(customer, amount)
        with self.assertNumQueries(1):
            debtors = [(customer.name, customer.balance) for customer in Customer.objects.debtors()]
        self.assertEqual(debtors, [("Ada", -900), ("Bob", -900), ("Dora", -900)])
        self.pays("Ada", 100)
        self.assertEqual([customer.name for customer in Customer.objects.debtors()], ["Bob", "Dora", "Ada"])
