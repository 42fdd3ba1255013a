"""What tests on real data share with those of reports."""

from __future__ import annotations

from tests.reports.conftest import browser

__all__ = ["browser"]
