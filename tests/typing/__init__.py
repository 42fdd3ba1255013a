"""The public names as type checkers see them."""
