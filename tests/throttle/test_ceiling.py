"""Detection of a provider's limit of requests in flight, as opposed to a rate limit."""

from astra_async.asking.throttle.concurrency import EnforcedLimit


class Requests:
    def __init__(self) -> None:
        self.ceiling = EnforcedLimit()
        self.now = 0.0
        self.in_flight = 0

    def let_in(self) -> None:
        self.in_flight += 1
        self.ceiling.record_accepted(self.in_flight, self.now)

    def reject(self, *, new_burst: bool = True) -> bool:
        return self.ceiling.explains(self.in_flight + 1, self.now, new_burst=new_burst)

    def end(self) -> None:
        self.in_flight -= 1

    def after(self, seconds: float) -> "Requests":
        self.now += seconds
        return self


def with_ceiling(limit: int = 4) -> Requests:
    each = Requests()
    for _ in range(limit):
        each.let_in()
    each.reject()
    assert each.after(2).reject()
    assert each.ceiling.limit == limit
    return each


def test_two_consistent_bursts_establish_a_limit() -> None:
    with_ceiling(4)


def test_one_burst_does_not() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    assert not each.reject()
    assert each.ceiling.limit is None


def test_two_bursts_within_a_second_do_not() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject()
    assert not each.after(0.5).reject()


def test_a_request_accepted_with_as_many_in_flight_contradicts_the_limit() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject()
    each.after(2).let_in()
    assert not each.reject()
    assert each.ceiling.limit is None


def test_rejections_explained_by_a_higher_rate_do_not_count() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject(new_burst=False)
    assert not each.after(2).reject(new_burst=False)


def test_one_request_above_the_limit_is_tried_and_more_rarely_after_failures() -> None:
    each = with_ceiling(4)
    ceiling = each.ceiling
    assert ceiling.ready_at(3, each.now) == each.now
    assert ceiling.ready_at(4, each.now) == each.now + 5
    assert ceiling.ready_at(5, each.now + 100) == float("inf")
    each.after(5).reject()
    assert ceiling.limit == 4
    assert ceiling.ready_at(4, each.now) == each.now + 10


def test_accepted_tries_raise_the_limit_until_one_is_rejected() -> None:
    each = with_ceiling(4)
    limits: list[int | None] = []
    for _ in range(3):
        while each.ceiling.limit is not None and each.in_flight < each.ceiling.limit:
            each.let_in()
        each.after(5).let_in()
        limits.append(each.ceiling.limit)
    assert limits == [6, 8, 11]
    each.in_flight = 6
    assert not each.reject()  # a rate limit says nothing of the tries before
    assert each.ceiling.explains(7, each.now, new_burst=True, lost=True)  # these were let in by chance
    assert each.ceiling.limit == 6


def test_another_process_with_a_share_of_the_limit_lowers_it() -> None:
    each = with_ceiling(4)
    for _ in range(5):
        each.end()
        each.let_in()
    each.end()
    each.reject()
    assert each.ceiling.limit == 3


def test_repeated_rejections_at_the_limit_remove_it() -> None:
    each = with_ceiling(4)
    each.end()
    each.reject()
    assert each.ceiling.limit is None
