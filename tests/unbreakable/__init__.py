"""Runs that are killed, cut off from their disk, cancelled or handed damaged folders: nothing is lost."""
