"""Replies per second from the cache, next to bare SQLite."""
