"""Whatever a file, a reply or a request holds, its loader ends soon, with a value or a typed error."""
