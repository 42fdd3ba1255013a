"""The version of the package: here, where it is read without looking through what is installed."""

VERSION = "0.1.0"
