"""Tests of the models: specs, transports, client."""
