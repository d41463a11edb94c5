"""Numbers as text, in the same form in every table, page and message."""

from __future__ import annotations

from math import floor, isnan, log10

NOTHING = "-"
"""Shown if there is no number."""


def significant(value: float) -> str:
    """Return a number with five significant digits, and with all digits before the point."""
    if isnan(value):
        return NOTHING
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value or 0.0:.4g}"
    return f"{value:,.{max(0, 4 - floor(log10(abs(value))))}f}"


def count(value: float) -> str:
    """Return a whole number without decimals, another one with two."""
    return NOTHING if isnan(value) else f"{value:,.2f}".removesuffix(".00")


def percent(value: float, digits: int = 2) -> str:
    """Return a share in percent. Zero, also after rounding, has no sign."""
    if isnan(value):
        return NOTHING
    text = f"{value:.{digits}%}"
    return text.removeprefix("-") if not text.strip("-0.%") else text
