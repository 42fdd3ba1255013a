"""Memory and time of a critique pass over many drafts."""
