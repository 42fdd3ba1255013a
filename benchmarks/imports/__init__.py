"""Time to import the package and to show the help of the command line."""
