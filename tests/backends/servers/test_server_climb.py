import pytest

from minicheck_eval.backends.servers.climb import Climb


def drive(climb, per_s, *, requests=2000, overloads=lambda lanes, ended: 0, full=True):
    """Let requests end at the rate that a server has with so many lanes; return the lanes after each."""
    now_s, course = 0.0, []
    for ended in range(requests):
        now_s += 1 / per_s(climb.lanes)
        climb.ended(now_s, full=full, overloads=overloads(climb.lanes, ended))
        course.append(climb.lanes)
    return course


@pytest.mark.parametrize(("slots", "expected"), [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (100, 32)])
def test_as_many_lanes_as_the_server_has_slots(slots, expected):
    """The lanes double while the throughput rises, and stay where it no longer does, at 32 at the most."""
    course = drive(Climb(), lambda lanes: 50 * min(lanes, slots), requests=10_000)
    assert 9000 <= course.count(expected)
    assert 2 * expected >= max(course)


def test_little_gain_is_not_worth_it():
    """Ten percent more throughput with twice the requests is no reason to ask more at once."""
    assert 1900 <= drive(Climb(), lambda lanes: 50 * lanes**0.14).count(1)


def test_windows_with_idle_lanes_are_not_judged():
    """Where the questions and not the server are the limit nothing is learned."""
    assert [1] * 100 == drive(Climb(), lambda lanes: 50 * lanes, requests=100, full=False)


def test_an_overloaded_server_is_asked_half_as_much():
    """Where requests beyond eight lanes are turned away there are eight lanes; more are tried less and less often."""
    refused = 0

    def overloads(lanes, ended):
        nonlocal refused
        refused += lanes > 8
        return refused

    course = drive(Climb(), lambda lanes: 50 * lanes, overloads=overloads)
    assert 16 == max(course)
    assert 1800 <= course.count(8)
    assert 100 > refused


def test_single_errors_are_no_overload():
    """One error in fifty requests does not keep the lanes down, nor does one at the very start."""
    course = drive(Climb(), lambda lanes: 50 * min(lanes, 16), overloads=lambda lanes, ended: 1 + ended // 50)
    assert 16 == course[-1]


def test_a_server_that_is_busy_at_first_is_climbed_later():
    """Overload while one lane asks, as by a model that is being loaded, decides nothing."""
    course = drive(Climb(), lambda lanes: 50 * min(lanes, 4), overloads=lambda lanes, ended: min(ended, 40))
    assert [1] * 40 == course[:40]
    assert 4 == course[-1]


def test_a_misleading_window_does_not_decide_for_ever():
    """If the first attempt at two lanes meets a slow stretch, a later one finds that they help."""
    slow = iter([False] * 8 + [True] * 20)
    course = drive(Climb(), lambda lanes: 5 if next(slow, False) else 50 * min(lanes, 8))
    assert 1 == course[30]
    assert 1500 <= course.count(8)
