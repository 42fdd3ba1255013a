"""Runs that are killed at random points and gone on with."""
