"""How long it takes to import the package and to show the command line's help."""
