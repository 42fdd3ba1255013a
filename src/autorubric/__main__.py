"""Entry point of `python -m autorubric`, the command line."""

from autorubric.cli import main

if __name__ == "__main__":
    main()
