"""Prints a line for each step of a lane, as xtask reads it."""

import sys
from contextlib import contextmanager

FRUIT = {"apiVersion": "user.k8sasdb.org/v1", "kind": "Fruit"}

_failed = False


@contextmanager
def step(name):
    """One step; whatever is raised inside is its failure, and the next one goes on."""
    global _failed
    try:
        yield
    except Exception as error:  # noqa: BLE001: a lane tells every failure
        _failed = True
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {name}: {text[:300]}", flush=True)
    else:
        print(f"ok {name}", flush=True)


def expect(what, found, expected):
    """Equal, or a failure."""
    if found != expected:
        raise AssertionError(f"{what} is {found!r}, not {expected!r}")


def expect_story(seen):
    """An object came, changed and went."""
    expect("the story", (seen[0], "MODIFIED" in seen, seen[-1]), ("ADDED", True, "DELETED"))


def finish():
    """Ends the program."""
    sys.exit(1 if _failed else 0)
