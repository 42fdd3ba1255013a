"""Annotated types of fields that pydantic validates."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

FiniteFloat: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
NonNegativeFloat: TypeAlias = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
PositiveFloat: TypeAlias = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number in [0, 1]."""
Count: TypeAlias = Annotated[int, Field(ge=0)]
NonEmptyText: TypeAlias = Annotated[str, Field(min_length=1)]
NonBlankText: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"\S")]
