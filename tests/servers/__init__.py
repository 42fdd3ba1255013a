"""Servers that the tests start: real HTTP on loopback, each in its own process."""
