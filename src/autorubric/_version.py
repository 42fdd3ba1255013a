"""The version of the package, kept here so that no package metadata has to be read."""

VERSION = "0.1.0"
