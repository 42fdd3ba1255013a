"""One label per item from the votes of several raters: majority vote and the Dawid-Skene model."""
