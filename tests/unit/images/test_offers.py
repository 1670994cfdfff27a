"""What the images offer: the locks that PyBox ships, and what a box imports at its start."""

from __future__ import annotations

import pytest

from pybox_kernel.errors import OptionError
from pybox_kernel.images.offers import BUILT_IN, built_in_offer, in_words, own_offer
from pybox_kernel.images.package_locks import Lock, LockedPackage
from pybox_kernel.images.recipes import Offer, Pin

COMPILED = ("contourpy", "fonttools", "kiwisolver", "matplotlib", "numpy", "pandas", "pillow", "scikit-learn", "scipy")
TARGETS = 6
"""Three versions of Python on two machines."""


def offered(name: str) -> Offer:
    offer = built_in_offer(name)
    assert offer is not None
    return offer


def lock(*names: str) -> Lock:
    return Lock(tuple(LockedPackage(name, "1.0", ("a" * 64,)) for name in names))


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_compiled_package_is_locked_for_every_python_and_machine(name: str) -> None:
    pins = {pin.name: pin for pin in offered(name).pins}
    assert {pin: len(pins[pin].hashes) for pin in COMPILED if pin in pins} == {
        pin: TARGETS for pin in COMPILED if pin in pins
    }
    assert all(pin.hashes for pin in pins.values())


def test_data_has_the_three_libraries_and_class_three_more_on_the_same_ones() -> None:
    data, course = ({pin.name: pin for pin in offered(name).pins} for name in ("data", "class"))
    assert {"numpy", "pandas", "matplotlib"} <= data.keys()
    assert {"scipy", "scikit-learn", "seaborn"} <= course.keys() - data.keys()
    assert {name: course[name] for name in data} == data
    assert offered("data").preload == ("numpy", "pandas", "matplotlib.pyplot")


def test_other_names_have_nothing_built_in() -> None:
    assert built_in_offer("stdlib") is None
    assert built_in_offer("mine") is None


def test_what_takes_long_is_imported_at_the_start_and_so_is_what_is_asked_for() -> None:
    assert own_offer(lock("humanize", "pandas")).preload == ("pandas",)
    assert own_offer(lock("humanize", "pandas"), ("humanize", "pandas")).preload == ("pandas", "humanize")


@pytest.mark.parametrize("name", ["", "a b", "a.", ".a", "a-b", "a;b", "1a", "a\n", "é", "a" * 101, "../a"])
def test_a_module_to_be_imported_is_named_as_python_names_modules(name: str) -> None:
    with pytest.raises(OptionError, match="not named as Python names modules"):
        own_offer(lock("humanize"), (name,))


def test_an_offer_in_words_begins_with_what_people_ask_for() -> None:
    assert in_words(own_offer(lock("humanize"))) == "1 Python package: humanize 1.0"
    names = [f"a{number}" for number in range(8)]
    assert in_words(own_offer(lock(*names, "pandas"))) == (
        "9 Python packages: pandas 1.0, a0 1.0, a1 1.0, a2 1.0, a3 1.0, a4 1.0 and 3 more"
    )


def test_an_offer_gives_back_the_lock_it_was_made_of() -> None:
    assert own_offer(lock("a", "b")).lock == lock("a", "b")
    assert own_offer(lock("a")).pins == (Pin(name="a", version="1.0", hashes=("a" * 64,)),)
