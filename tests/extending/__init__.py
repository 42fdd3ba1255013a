"""Things that other packages can add, as docs/contributing/extending.md describes them."""
