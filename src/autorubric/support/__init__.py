"""General-purpose helpers, which know nothing about grading."""
