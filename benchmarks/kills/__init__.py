"""Runs that are killed at random points and resumed."""
